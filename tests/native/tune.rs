//! Schedules that are measured, and remembered.

use std::fs;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{self, Waker};

use wgslab::{Binding, Code, Context, DType, Device, Driver, ErrorKind, ProgramSpec, TensorNode, Tune, gpu, host};

use crate::{open, open_with};

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
    assert!(tuned.explain().contains(" was tuned: "), "{}", tuned.explain());
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
    let text = tuned.explain();
    assert!(text.contains(&format!("schedule {last}: number ")), "{text}");
    assert!(text.ends_with("\nkernel 1 was tuned: 1 ns; number 1 of 99 took 2 ns"), "{text}");
    assert_eq!(result(&device, &tuned), result(&device, &compile(&device, spec())));
}

#[test]
fn garbage_in_the_file_is_measured_anew_and_written_over() {
    let folder = Folder::new("garbage");
    fs::create_dir_all(folder.file().parent().unwrap()).unwrap();
    fs::write(folder.file(), b"\xff\xfe\0 not a line\n1 2 3\n7 4 10 20 a schedule of another version\n").unwrap();
    let first = device(&folder.file());
    let code = compile(&first, spec().tune(Tune::Quick));
    assert!(code.explain().contains(" was tuned: "), "{}", code.explain());
    let text = fs::read_to_string(folder.file()).unwrap();
    assert_eq!(text.lines().count(), 2, "what others may know stays: {text}");
    // A schedule that there is not.
    let broken: String =
        text.lines().map(|line| format!("{} tile 77\n", line.rsplitn(2, " of ").last().unwrap())).collect();
    fs::write(folder.file(), broken).unwrap();
    let second = device(&folder.file());
    assert!(compile(&second, spec().tune(Tune::Quick)).explain().contains(" was tuned: "));
    assert!(second.stats().dispatches > 0);

    // A file where the folder is to be: the device's memory has to do.
    let third = device(&folder.file().join("below"));
    let unkept = compile(&third, spec().tune(Tune::Quick)).explain();
    assert!(unkept.contains("\nwhat was measured is not kept: /") && unkept.contains("tuned/below: "), "{unkept}");
    let measured = third.stats().dispatches;
    compile(&third, spec().tune(Tune::Quick));
    assert_eq!(third.stats().dispatches, measured);
    third.keep_tuned_in(None);
    assert!(compile(&third, spec().tune(Tune::Quick)).explain().contains(" was tuned: "), "nothing is forgotten");
}

#[test]
fn a_file_that_has_grown_too_large_is_begun_anew() {
    let folder = Folder::new("large");
    fs::create_dir_all(folder.file().parent().unwrap()).unwrap();
    let lines: String = (0..8000).map(|key| format!("{key} 4 1000 2000 point of 64 lanes\n")).collect();
    fs::write(folder.file(), &lines).unwrap();
    compile(&device(&folder.file()), spec().tune(Tune::Quick));
    assert!(lines.len() > 256 << 10);
    assert_eq!(fs::read_to_string(folder.file()).unwrap().lines().count(), 1);
}

#[test]
fn a_budget_bounds_measuring_and_what_was_not_measured_is_not_remembered() {
    let folder = Folder::new("budget");
    let device = device(&folder.file());
    let code = compile(&device, spec().tune(Tune::Full).tune_budget_ms(0));
    assert!(!code.explain().contains("tuned"), "{}", code.explain());
    let why = "\nkernel 1 was not measured: the 0 ms for measuring were over";
    assert!(code.explain().ends_with(why), "{}", code.explain());
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
        assert!(code.explain().contains(" was tuned: "), "{}", code.explain());
    }
    assert_eq!(device.used_memory(), 0);
    assert_eq!(device.constant_buffer_cache(), []);
}

#[test]
fn what_there_is_no_room_to_measure_says_so_and_is_measured_once_there_is() {
    let folder = Folder::new("room");
    let options = gpu::OpenOptions { memory_budget_bytes: Some(4 << 20), ..gpu::OpenOptions::default() };
    let device = open_with(options);
    device.keep_tuned_in(Some(&folder.file()));
    let large = TensorNode::new("large", DType::F32, [960 << 10]);
    let full = Context::root(&device).init_from_host(&large, &vec![0.0f32; 960 << 10]).unwrap();
    let large = || ProgramSpec::new("p", "y[i] = i * 2 where i in 0:131072").tune(Tune::Quick);
    let code = compile(&device, large());
    let text = code.explain();
    assert!(text.contains("\nkernel 1 was not measured: ") && text.contains("budget"), "{text}");
    assert!(!text.contains(" was tuned: "), "{text}");
    assert_eq!((device.tuned(), folder.file().exists()), (String::new(), false));
    drop(full);
    let text = compile(&device, large()).explain();
    assert!(text.contains(" was tuned: ") && !text.contains("not measured"), "{text}");
    assert_eq!(device.used_memory(), 0);
}

#[test]
fn measuring_touches_no_data_of_programs_that_write_what_they_read() {
    let folder = Folder::new("in-place");
    let device = device(&folder.file());
    let (x, n) = (TensorNode::new("x", DType::F32, [4096]), TensorNode::new("n", DType::U8, [17]));
    let values: Vec<f32> = (0..4096u16).map(f32::from).collect();
    let root = Context::root(&device).init_from_host(&x, &values).unwrap();
    let root = root.init_from_host(&n, &[3u8; 17]).unwrap();
    let text = "x[i] = x[i] * 2 + 1\nn[j] += u8(sum[i](x[i * 17 + j] >= 0 ? 1 : 0)) where i in 0:240";
    for binding in [Binding::Pooled, Binding::Direct] {
        let spec = ProgramSpec::new("p", text).node(&x).node(&n).binding(binding).tune(Tune::Full);
        let before = device.stats().dispatches;
        let code = compile(&device, spec);
        assert!(code.explain().contains(" was tuned: "), "{}", code.explain());
        assert!(device.stats().dispatches > before, "{binding:?} was measured");
        let routine = pollster::block_on(root.link(&code)).unwrap();
        if binding == Binding::Pooled {
            assert_eq!(pollster::block_on(root.to_host::<f32>(&x)).unwrap(), values);
            assert_eq!(pollster::block_on(root.to_host::<u8>(&n)).unwrap(), [3; 17]);
        }
        routine.run().unwrap();
    }
    let want: Vec<f32> = values.iter().map(|value| value * 4.0 + 3.0).collect();
    assert_eq!(pollster::block_on(root.to_host::<f32>(&x)).unwrap(), want);
    assert_eq!(pollster::block_on(root.to_host::<u8>(&n)).unwrap(), [(3 + 2 * 240) as u8; 17]);
}

#[test]
fn two_devices_that_tune_at_once_keep_what_both_measured() {
    let folder = Folder::new("at-once");
    let tune = |own: u32| {
        let device = device(&folder.file());
        let text = format!("z[i] = i * {own} where i in 0:{}", 5000 + own);
        let specs = vec![spec().tune(Tune::Quick), ProgramSpec::new("own", text).tune(Tune::Quick)];
        let codes = pollster::block_on(device.compile_batch(specs)).unwrap();
        for code in &codes {
            assert!(code.explain().contains(" was tuned: "), "{}", code.explain());
        }
        result(&device, &codes[0])
    };
    let (one, other) = std::thread::scope(|scope| {
        let other = scope.spawn(|| tune(1));
        (tune(2), other.join().unwrap())
    });
    assert_eq!(one, other);
    let text = fs::read_to_string(folder.file()).unwrap();
    assert_eq!(text.lines().count(), 3, "the one that both have, and one each: {text}");
    let left: Vec<_> = fs::read_dir(folder.file().parent().unwrap()).unwrap().map(|entry| entry.unwrap()).collect();
    assert_eq!(left.len(), 1, "{left:?}");
    let third = device(&folder.file());
    assert_eq!(result(&third, &compile(&third, spec().tune(Tune::Quick))), one);
    assert_eq!(third.stats().dispatches, 1, "the one of the result");
}

#[test]
fn into_how_many_parts_long_reductions_are_split_is_measured_as_well() {
    let (folder, len) = (Folder::new("split"), (1u32 << 20) + 7);
    let x = TensorNode::new("x", DType::I32, [len]);
    let values: Vec<i32> = (0..len as i32).map(|at| at % 1009 - 500).collect();
    let spec = |tune| ProgramSpec::new("sum", "y +=! x[i]").node(&x).tune(tune).tune_budget_ms(60_000);
    let first = device(&folder.file());
    let estimated = compile(&first, spec(Tune::Off)).explain();
    compile(&first, spec(Tune::Quick));
    let lines: Vec<String> = first.tuned().lines().map(str::to_owned).collect();
    assert!(lines.len() >= 4, "kernels of more than one way: {lines:?}");
    let mut others = 0;
    // One kernel after the other as if it took nothing, and all others took long.
    for fast in 0..lines.len() {
        let told = |(at, line): (usize, &String)| {
            let part = |number| line.splitn(5, ' ').nth(number).unwrap();
            let ns = if at == fast { 1 } else { 1_000_000 };
            format!("{} {} {ns} {ns} {}\n", part(0), part(1), part(4))
        };
        let next = device(&folder.0.join("none"));
        next.remember_tuned(&lines.iter().enumerate().map(told).collect::<String>());
        let code = compile(&next, spec(Tune::Quick));
        assert_eq!(next.stats().dispatches, 0, "all is known");
        let text = code.explain();
        others += usize::from(text.contains("\nlong reductions are split as was measured: "));
        assert_eq!(compile(&next, spec(Tune::Off)).explain(), estimated);
        let root = Context::root(&next).init_from_host(&x, &values).unwrap();
        let routine = pollster::block_on(root.link(&code)).unwrap();
        routine.run().unwrap();
        let got = pollster::block_on(routine.context().to_host::<i32>(code.node("y").unwrap())).unwrap();
        assert_eq!(got, [values.iter().sum::<i32>()], "{text}");
    }
    assert!(others > 0, "{lines:?}");
}

/// Polls a compilation until it has begun to measure.
fn begun<'d>(
    device: &'d Device<gpu::Gpu>,
    spec: ProgramSpec,
) -> Pin<Box<dyn Future<Output = wgslab::Result<()>> + 'd>> {
    let before = device.stats().dispatches;
    let mut compiling: Pin<Box<dyn Future<Output = _>>> =
        Box::pin(async move { device.compile(spec).await.map(|_| ()) });
    let mut context = task::Context::from_waker(Waker::noop());
    while device.stats().dispatches == before {
        assert!(compiling.as_mut().poll(&mut context).is_pending(), "it is measured in one go");
        device.flush().unwrap();
    }
    compiling
}

#[test]
fn whoever_stops_waiting_ends_measuring_and_leaves_nothing() {
    let folder = Folder::new("dropped");
    let device = device(&folder.file());
    drop(begun(&device, spec().tune(Tune::Full)));
    assert_eq!(device.used_memory(), 0, "scratch is freed");
    assert_eq!(device.tuned(), "", "half a measurement is none");
    let text = compile(&device, spec().tune(Tune::Quick)).explain();
    assert!(text.contains(" was tuned: "), "the turn is free again: {text}");
}

#[test]
fn contexts_and_nodes_that_go_while_it_is_measured_are_not_missed() {
    let folder = Folder::new("disposed");
    let device = device(&folder.file());
    let a = TensorNode::new("a", DType::F32, [96, 64]);
    let root = Context::root(&device).init_from_host(&a, &vec![1.0f32; 96 * 64]).unwrap();
    let b = TensorNode::new("b", DType::F32, [64, 80]);
    let spec = ProgramSpec::new("product", TEXT).node(&a).node(&b).tune(Tune::Quick);
    let compiling = begun(&device, spec.clone());
    root.finalize();
    drop((root, a, b));
    pollster::block_on(compiling).unwrap();
    let text = compile(&device, spec).explain();
    assert!(text.contains(" was tuned: "), "{text}");
    assert_eq!(device.used_memory(), 0);
}

#[test]
fn a_device_that_is_lost_while_it_measures_says_so_and_keeps_nothing_half() {
    let folder = Folder::new("lost-meanwhile");
    let first = device(&folder.file());
    let compiling = begun(&first, spec().tune(Tune::Full));
    first.destroy();
    let error = pollster::block_on(compiling).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DeviceLost, "{error}");
    assert!(error.to_string().starts_with("compile \"product\": "), "{error}");
    assert_eq!((first.tuned(), folder.file().exists()), (String::new(), false));
    let second = device(&folder.file());
    assert!(compile(&second, spec().tune(Tune::Quick)).explain().contains(" was tuned: "));
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
