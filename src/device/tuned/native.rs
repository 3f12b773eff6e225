//! Natively what was measured is in a file, and compiling measures.

use std::future::poll_fn;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
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

/// Bytes of a file from which on it is begun anew: some four thousand kernels.
const MOST_BYTES: u64 = 256 << 10;

/// Held while a file is read and written, so that no device of the process writes over what another one wrote meanwhile.
static SAVING: Mutex<()> = Mutex::new(());

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

    /// Reads the file, the first time.
    pub(super) fn load_tuned(&self) {
        if !self.record().tuned.native.is_read {
            self.load_tuned_again();
        }
    }

    /// Reads the file, to which others may have written.
    pub(crate) fn load_tuned_again(&self) {
        self.record().tuned.native.is_read = true;
        if let Some(path) = self.tuned_file() {
            self.remember_tuned(&lines_in(&path));
        }
    }

    /// Writes the file, with what others wrote there meanwhile.
    ///
    /// # Errors
    /// Why it cannot be written, in words: then the device's memory has to do.
    pub(crate) fn save_tuned(&self) -> Result<(), String> {
        let Some(path) = self.tuned_file() else { return Ok(()) };
        let _saving = SAVING.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = Tuned::default();
        all.read(&lines_in(&path));
        all.read(&self.tuned());
        // In one step, so that nobody sees half of it.
        let new = path.with_extension(format!("{}.{}.new", std::process::id(), self.device_id()));
        let folder = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        let written = folder.and_then(|()| std::fs::write(&new, all.lines()));
        written.and_then(|()| std::fs::rename(&new, &path)).map_err(|error| {
            let _ = std::fs::remove_file(&new);
            format!("{}: {error}", path.display())
        })
    }
}

/// What a file says. One that is not there, that is damaged, or that has grown too large is as good as none.
fn lines_in(path: &Path) -> String {
    let is_small = |path: &&Path| std::fs::metadata(path).is_ok_and(|about| about.len() <= MOST_BYTES);
    let bytes = Some(path).filter(is_small).and_then(|path| std::fs::read(path).ok()).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The file in the user's cache folder, if there is one.
fn cache_file() -> Option<PathBuf> {
    let folder = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let own = if cfg!(target_os = "macos") { "Library/Caches" } else { ".cache" };
    let home = || folder("HOME").map(|home| home.join(own));
    let cache = folder("XDG_CACHE_HOME").or_else(|| folder("LOCALAPPDATA")).or_else(home);
    cache.map(|cache| cache.join("wgslab").join("tuned"))
}
