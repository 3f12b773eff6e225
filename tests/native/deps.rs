//! Execution dependencies between routines of one line of contexts.

use wgslab::{Access, Context, ErrorKind, KernelSpec, Landing, Routine, TensorNode, gpu};

use crate::{increment, ints, open};

fn copy(context: &Context<gpu::Gpu>, name: &str, from: &TensorNode, to: &TensorNode) -> Routine<gpu::Gpu> {
    let text = "@compute @workgroup_size(1) fn main() { store_to(0u, load_from(0u)); }";
    let spec = KernelSpec::new(name, text).tensor("from", from, Access::Read).tensor("to", to, Access::Write);
    let code = pollster::block_on(context.device().compile(spec)).unwrap();
    pollster::block_on(context.link(&code)).unwrap()
}

#[test]
fn running_too_early_names_the_routine_that_must_run_first() {
    let device = open();
    let (x, y, z) = (ints("x", 1), ints("y", 1), ints("z", 1));
    let root = Context::root(&device).init_from_host(&x, &[1]).unwrap();
    let first = copy(&root, "first", &x, &y);
    let second = copy(first.context(), "second", &y, &z);
    assert!(first.can_run() && !second.can_run());
    let error = second.run().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotRun);
    assert!(error.is_retryable());
    let wanted = format!("run \"second\": {}\"first\" must run first", first.id());
    assert!(error.to_string().starts_with(&wanted), "{error}");
    assert_eq!(second.execution_deps(), [(first.id(), "first".to_owned())]);
    first.run().unwrap();
    assert!(second.can_run() && second.execution_deps().is_empty());
    second.run().unwrap();
    assert_eq!(pollster::block_on(second.context().to_host::<i32>(&z)).unwrap(), [1]);
}

#[test]
fn writing_waits_for_earlier_readers_and_writers_and_siblings_do_not_wait() {
    let device = open();
    let (x, y) = (ints("x", 1), ints("y", 1));
    let root = Context::root(&device).init_from_host(&x, &[1]).unwrap();
    let reader = copy(&root, "reader", &x, &y);
    let writer = increment(reader.context(), &x);
    assert_eq!(writer.execution_deps(), [(reader.id(), "reader".to_owned())], "write after read");
    let again = increment(writer.context(), &x);
    let both = [(reader.id(), "reader".to_owned()), (writer.id(), "increment".to_owned())];
    assert_eq!(again.execution_deps(), both, "write after write, and the reader that has not run either");
    let sibling = increment(&root, &x);
    sibling.run().unwrap();
    drop(reader);
    assert!(writer.can_run(), "nobody waits for a routine that is gone");
    writer.run().unwrap();
    again.run().unwrap();
    assert_eq!(pollster::block_on(root.to_host::<i32>(&x)).unwrap(), [4]);
}

#[test]
fn dropping_a_routine_in_the_middle_keeps_those_before_it() {
    let device = open();
    let (a, x, y) = (ints("a", 1), ints("x", 1), ints("y", 1));
    let root = Context::root(&device).init_from_host(&a, &[5]).unwrap();
    let first = copy(&root, "first", &a, &x);
    let second = copy(first.context(), "second", &a, &x);
    let reader = copy(second.context(), "reader", &x, &y);
    drop(second);
    assert_eq!(reader.execution_deps(), [(first.id(), "first".to_owned())]);
    assert_eq!(reader.run().unwrap_err().kind(), ErrorKind::NotRun);
    first.run().unwrap();
    reader.run().unwrap();
    assert_eq!(pollster::block_on(reader.context().to_host::<i32>(&y)).unwrap(), [5]);
}

#[test]
fn a_copy_waits_for_the_writer_of_what_it_copies() {
    let device = open();
    let (a, x) = (ints("a", 1), ints("x", 1));
    let root = Context::root(&device).init_from_host(&a, &[5]).unwrap();
    let writer = copy(&root, "writer", &a, &x);
    let line = writer.context();
    let merge = line.device_to_device(&x, Landing::MergeBuffer, line).unwrap().unwrap();
    assert_eq!(merge.execution_deps(), [(writer.id(), "writer".to_owned())]);
    let after = increment(merge.context(), &x);
    assert_eq!(after.execution_deps().len(), 2, "the copy reads what it writes");
    writer.run().unwrap();
    merge.run().unwrap();
    after.run().unwrap();
}
