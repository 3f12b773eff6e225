//! Schedules that are measured, and remembered.

use std::fs;
use std::path::{Path, PathBuf};

use wgslab::{Code, Context, DType, Device, Driver, ErrorKind, ProgramSpec, TensorNode, Tune, gpu, host};

use crate::open;

const TEXT: &str = "c[i, j] +=! a[i, k] * b[k, j]\ny[i, j] = i32(max(c[i, j], 0))";

/// A folder of its own, which goes in the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("wgslab-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("some").join("tuned")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn device(file: &Path) -> Device<gpu::Gpu> {
    let device = open();
    device.keep_tuned_in(Some(file));
    device
}

fn spec() -> ProgramSpec {
    let a = TensorNode::new("a", DType::F32, [96, 64]);
    ProgramSpec::new("product", TEXT).node(&a).node(&TensorNode::new("b", DType::F32, [64, 80]))
}

fn compile<D: Driver>(device: &Device<D>, spec: ProgramSpec) -> Code<D> {
    pollster::block_on(device.compile(spec)).unwrap_or_else(|error| panic!("{error}"))
}

fn result(device: &Device<gpu::Gpu>, code: &Code<gpu::Gpu>) -> Vec<i32> {
    let (a, b) = (code.node("a").unwrap(), code.node("b").unwrap());
    let values = |len: usize| (0..len).map(|at| (at % 13) as f32 - 4.0).collect::<Vec<_>>();
    let root = Context::root(device).init_from_host(a, &values(96 * 64)).unwrap();
    let root = root.init_from_host(b, &values(64 * 80)).unwrap();
    let routine = pollster::block_on(root.link(code)).unwrap();
    routine.run().unwrap();
    pollster::block_on(routine.context().to_host(code.node("y").unwrap())).unwrap()
}

#[test]
fn what_was_measured_is_remembered_by_the_device_and_by_the_file() {
    let folder = Folder::new("remembered");
    let first = device(&folder.file());
    let plain = compile(&first, spec());
    assert!(!plain.explain().contains("tuned"), "{}", plain.explain());
    let used = first.used_memory();
    let tuned = compile(&first, spec().tune(Tune::Quick));
    assert!(tuned.explain().contains(": tuned, "), "{}", tuned.explain());
    assert_eq!(first.used_memory(), used, "scratch is freed");
    let measured = first.stats().dispatches;
    assert!(measured > 4 * 2, "{measured} runs");
    assert_eq!(result(&first, &tuned), result(&first, &plain));

    let again = compile(&first, spec().tune(Tune::Quick));
    assert_eq!((again.explain(), first.stats().dispatches), (tuned.explain(), measured + 2), "the two of the results");

    let text = fs::read_to_string(folder.file()).unwrap();
    assert_eq!(text, first.tuned());
    assert_eq!(text.lines().count(), 1, "{text}");
    let second = device(&folder.file());
    assert_eq!(compile(&second, spec().tune(Tune::Quick)).explain(), tuned.explain());
    assert_eq!(second.stats().dispatches, 0);

    let full = compile(&second, spec().tune(Tune::Full));
    assert!(second.stats().dispatches > 0, "four schedules are not all: {}", full.explain());
    let known = second.stats().dispatches;
    assert_eq!(compile(&second, spec().tune(Tune::Quick)).explain(), full.explain(), "all are more than four");
    assert_eq!(second.stats().dispatches, known);
}

#[test]
fn without_tuning_the_choice_is_the_same_whatever_was_measured() {
    let folder = Folder::new("off");
    let device = device(&folder.file());
    let before = compile(&device, spec()).explain();
    compile(&device, spec().tune(Tune::Quick));
    // The slowest that there is, as if it had been measured fastest.
    let last = compile(&device, spec()).candidates().next().unwrap().1.last().unwrap().schedule.to_string();
    let key = device.tuned().split(' ').next().unwrap().to_owned();
    device.remember_tuned(&format!("{key} 99 1 2 {last}"));
    assert_eq!(compile(&device, spec()).explain(), before);
    let tuned = compile(&device, spec().tune(Tune::Full));
    assert!(tuned.explain().contains(&format!("schedule {last}: tuned, 1 ns")), "{}", tuned.explain());
    assert_eq!(result(&device, &tuned), result(&device, &compile(&device, spec())));
}

#[test]
fn garbage_in_the_file_is_measured_anew_and_written_over() {
    let folder = Folder::new("garbage");
    fs::create_dir_all(folder.file().parent().unwrap()).unwrap();
    fs::write(folder.file(), b"\xff\xfe\0 not a line\n1 2 3\n7 4 10 20 a schedule of another version\n").unwrap();
    let first = device(&folder.file());
    let code = compile(&first, spec().tune(Tune::Quick));
    assert!(code.explain().contains(": tuned, "), "{}", code.explain());
    let text = fs::read_to_string(folder.file()).unwrap();
    assert_eq!(text.lines().count(), 2, "what others may know stays: {text}");
    // A schedule that there is not.
    let broken: String =
        text.lines().map(|line| format!("{} tile 77\n", line.rsplitn(2, " of ").last().unwrap())).collect();
    fs::write(folder.file(), broken).unwrap();
    let second = device(&folder.file());
    assert!(compile(&second, spec().tune(Tune::Quick)).explain().contains(": tuned, "));
    assert!(second.stats().dispatches > 0);

    // A file where the folder is to be: the device's memory has to do.
    let third = device(&folder.file().join("below"));
    compile(&third, spec().tune(Tune::Quick));
    let measured = third.stats().dispatches;
    compile(&third, spec().tune(Tune::Quick));
    assert_eq!(third.stats().dispatches, measured);
    third.keep_tuned_in(None);
    assert!(compile(&third, spec().tune(Tune::Quick)).explain().contains(": tuned, "), "nothing is forgotten");
}

#[test]
fn a_budget_bounds_measuring_and_what_was_not_measured_is_not_remembered() {
    let folder = Folder::new("budget");
    let device = device(&folder.file());
    let code = compile(&device, spec().tune(Tune::Full).tune_budget_ms(0));
    assert!(!code.explain().contains("tuned"), "{}", code.explain());
    assert_eq!((device.stats().dispatches, device.tuned()), (0, String::new()));
    assert!(!folder.file().exists());
}

#[test]
fn programs_of_a_batch_are_measured_one_after_the_other_and_all_kinds_of_nodes_have_scratch() {
    let folder = Folder::new("batch");
    let device = device(&folder.file());
    let table = TensorNode::with_mode("table", DType::F32, [64, 32], wgslab::MemoryMode::Constant);
    let ids = TensorNode::new("ids", DType::U8, [4096]);
    let gather = ProgramSpec::new("gather", "y[t, d] = table[ids[t], d] + f32(@s)").node(&table).node(&ids);
    let view = TensorNode::view("v", &TensorNode::new("base", DType::F32, [200]), 3, [190]);
    let odd = ProgramSpec::new("odd", "z[i] = v[i] * 2").node(&view);
    let specs = vec![gather.tune(Tune::Quick), odd.tune(Tune::Quick), spec().tune(Tune::Quick)];
    let codes = pollster::block_on(device.compile_batch(specs)).unwrap();
    for code in &codes {
        assert!(code.explain().contains(": tuned, "), "{}", code.explain());
    }
    assert_eq!(device.used_memory(), 0);
    assert_eq!(device.constant_buffer_cache(), []);
}

#[test]
fn a_lost_device_ends_tuning_and_the_host_has_nothing_to_measure() {
    let lost = device(&Folder::new("lost").file());
    lost.destroy();
    let error = pollster::block_on(lost.compile(spec().tune(Tune::Quick))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DeviceLost, "{error}");
    let on_host = host::open(host::OpenOptions::default()).unwrap();
    let code = compile(&on_host, spec().tune(Tune::Full));
    assert!(!code.explain().contains("tuned"), "{}", code.explain());
    assert_eq!(on_host.stats().dispatches, 0);
}
