//! Natively what was measured is in a file, and compiling measures.

use std::future::poll_fn;
use std::path::{Path, PathBuf};
use std::task::{Poll, Waker};

use super::{Entry, Tuned};
use crate::device::Device;
use crate::driver::Driver;

#[derive(Debug, Default)]
pub(super) struct Native {
    /// Where the lines are kept; `None` for the user's cache folder.
    file: Option<Option<PathBuf>>,
    is_read: bool,
    /// Whether somebody measures, and who waits for that to end.
    is_taken: bool,
    waiting: Vec<Waker>,
}

impl Tuned {
    pub(super) fn lines(&self) -> String {
        let mut text = String::new();
        for (key, Entry { count, measured_ns: [own, first], schedule }) in &self.entries {
            text.push_str(&format!("{key} {count} {own} {first} {schedule}\n"));
        }
        text
    }
}

/// The turn to measure, which ends when this goes.
pub(crate) struct Turn<'a, D: Driver>(&'a Device<D>);

impl<D: Driver> Drop for Turn<'_, D> {
    fn drop(&mut self) {
        let waiting = {
            let native = &mut self.0.record().tuned.native;
            native.is_taken = false;
            std::mem::take(&mut native.waiting)
        };
        waiting.into_iter().for_each(Waker::wake);
    }
}

impl<D: Driver> Device<D> {
    /// The schedules that were measured on this device, or told to it, as lines of text for [`Device::remember_tuned`].
    pub fn tuned(&self) -> String {
        self.record().tuned.lines()
    }

    /// Keeps measured schedules in that file from now on, or in memory alone, instead of in `wgslab/tuned` in the user's cache
    /// folder (`XDG_CACHE_HOME`, or what the system has in its place).
    pub fn keep_tuned_in(&self, file: Option<&Path>) {
        let native = &mut self.record().tuned.native;
        (native.file, native.is_read) = (Some(file.map(Path::to_path_buf)), false);
    }

    /// Waits for the turn to measure.
    pub(crate) async fn tuning_turn(&self) -> Turn<'_, D> {
        poll_fn(|cx| {
            let native = &mut self.record().tuned.native;
            if native.is_taken {
                native.waiting.push(cx.waker().clone());
                return Poll::Pending;
            }
            native.is_taken = true;
            Poll::Ready(())
        })
        .await;
        Turn(self)
    }

    /// Takes what was measured of a kernel.
    pub(crate) fn learn_tuned(&self, key: u64, entry: Entry) {
        self.record().tuned.learn(key, entry);
    }

    fn tuned_file(&self) -> Option<PathBuf> {
        self.record().tuned.native.file.clone().unwrap_or_else(cache_file)
    }

    /// Reads the file, the first time. A file that is not there, or that is damaged, is as good as none.
    pub(super) fn load_tuned(&self) {
        if std::mem::replace(&mut self.record().tuned.native.is_read, true) {
            return;
        }
        let bytes = self.tuned_file().and_then(|path| std::fs::read(path).ok()).unwrap_or_default();
        self.remember_tuned(&String::from_utf8_lossy(&bytes));
    }

    /// Writes the file, with what others wrote there meanwhile. Where that is not possible, the device's memory has to do.
    pub(crate) fn save_tuned(&self) {
        let Some(path) = self.tuned_file() else { return };
        let bytes = std::fs::read(&path).unwrap_or_default();
        let mut all = Tuned::default();
        all.read(&String::from_utf8_lossy(&bytes));
        all.read(&self.tuned());
        // In one step, so that nobody sees half of it.
        let new = path.with_extension(format!("{}.{}.new", std::process::id(), self.device_id()));
        let folder = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        let written = folder.and_then(|()| std::fs::write(&new, all.lines()));
        if written.and_then(|()| std::fs::rename(&new, &path)).is_err() {
            let _ = std::fs::remove_file(&new);
        }
    }
}

/// The file in the user's cache folder, if there is one.
fn cache_file() -> Option<PathBuf> {
    let folder = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let own = if cfg!(target_os = "macos") { "Library/Caches" } else { ".cache" };
    let home = || folder("HOME").map(|home| home.join(own));
    let cache = folder("XDG_CACHE_HOME").or_else(|| folder("LOCALAPPDATA")).or_else(home);
    cache.map(|cache| cache.join("wgslab").join("tuned"))
}
