//! The examples of docs/notation.md: each is compiled, and run on the host driver; those with an error are refused there.

use wgslab::{Context, Device, ErrorKind, ProgramSpec, TensorNode, host};

const PAGE: &str = include_str!("../../docs/notation.md");

/// A block of the page.
struct Example<'a> {
    text: &'a str,
    given: Vec<TensorNode>,
    /// Line, column and kind.
    error: Option<(u32, u32, &'a str)>,
}

fn node(declaration: &str) -> TensorNode {
    let (name, ty) = declaration.split_once(": ").unwrap();
    let (dtype, extents) = ty.split_once('[').unwrap();
    let extents = extents.trim_end_matches(']').split(", ").filter(|extent| !extent.is_empty());
    let shape: Vec<u32> = extents.map(|extent| extent.parse().unwrap()).collect();
    TensorNode::new(name, dtype.parse().unwrap(), shape)
}

/// `# given x: f32[2, 3], n: i32[3]; error 2:8 shape-mismatch`
fn example(text: &str) -> Example<'_> {
    let head = text.lines().next().and_then(|line| line.strip_prefix("# given ")).unwrap_or_default();
    let (given, error) = head.split_once("; error ").map_or((head, None), |(given, error)| (given, Some(error)));
    let given = given.split_inclusive(']').map(|part| part.trim_start_matches(", ")).filter(|part| !part.is_empty());
    let error = error.map(|error| {
        let (place, kind) = error.split_once(' ').unwrap();
        let (line, column) = place.split_once(':').unwrap();
        (line.parse().unwrap(), column.parse().unwrap(), kind)
    });
    Example { text, given: given.map(node).collect(), error }
}

fn examples() -> Vec<Example<'static>> {
    PAGE.split("```notation\n").skip(1).map(|rest| example(rest.split("```").next().unwrap())).collect()
}

fn check(device: &Device<host::Host>, Example { text, given, error }: &Example) {
    let spec = given.iter().fold(ProgramSpec::new("example", *text), ProgramSpec::node);
    let code = match (pollster::block_on(device.compile(spec)), error) {
        (Ok(code), None) => code,
        (Err(found), None) => panic!("{text}\n{found}"),
        (Ok(_), Some(_)) => panic!("{text}\nis not refused"),
        (Err(found), &Some((line, column, kind))) => {
            let at = found.diagnostics().first().map(|at| (at.line, at.column));
            assert_eq!((at, found.kind().code()), (Some((line, column)), kind), "{text}\n{found}");
            return;
        }
    };
    let nodes: Vec<_> = given.iter().collect();
    let context = Context::root(device).init_zeros(&nodes).unwrap();
    let routine = pollster::block_on(context.link(&code)).unwrap();
    let statics: Vec<_> = code.statics().iter().map(|name| (name.as_str(), 0)).collect();
    pollster::block_on(async { routine.run_with(&statics).unwrap().await }).unwrap();
}

#[test]
fn every_example_of_the_page_does_what_the_page_says() {
    let device = host::open(host::OpenOptions::default()).unwrap();
    let examples = examples();
    assert!(examples.len() >= 18, "only {} examples", examples.len());
    assert!(examples.iter().filter(|example| example.error.is_some()).count() >= 5);
    for example in &examples {
        check(&device, example);
    }
}

/// What the page says where its contract is silent.
#[test]
fn decisions_of_the_page() {
    let device = host::open(host::OpenOptions::default()).unwrap();
    let refused =
        |text: &str| pollster::block_on(device.compile(ProgramSpec::new("example", text))).unwrap_err().kind();
    let deep = |depth: usize| format!("y = {}1{}", "(".repeat(depth), ")".repeat(depth));
    for text in [
        "pad = 1",
        "bitcast_u32 = 1",
        "y[i] = @pad where i in 0:2",
        "y[i] = 1 where\ni in 0:2",
        "y[i] = 1 where i in\n0:2",
        "y = max(1, 2,)",
        "x: f32[3,]",
        "x: f32[1 + 2]",
        "y[i] = 1 where i in 0:(1 + 2)",
        "y = 1e999",
        "y = 1; y max = 2",
        "y = 1\rz = 2",
        &deep(201),
    ] {
        assert_eq!(refused(text), ErrorKind::NotationSyntax, "{text:?}");
    }
    assert_eq!(refused("y = 1 < 2 < 3"), ErrorKind::DTypeMismatch);
    let code = pollster::block_on(device.compile(ProgramSpec::new("deep", deep(150)))).unwrap();
    // Created and never read afterwards: an output.
    let routine = pollster::block_on(Context::root(&device).link(&code)).unwrap();
    assert!(routine.context().ctx_buffers().contains(code.node("y").unwrap()));
    let read = ProgramSpec::new("read", "t = 1; y = t + 1");
    let code = pollster::block_on(device.compile(read)).unwrap();
    let routine = pollster::block_on(Context::root(&device).link(&code)).unwrap();
    assert!(routine.context().ctx_buffers().contains(code.node("y").unwrap()));
    assert_eq!(code.named_nodes().map(|(name, _)| name).collect::<Vec<_>>(), ["y"]);
    assert_eq!(code.node("t").unwrap_err().kind(), ErrorKind::UnknownNode);
    assert!(code.outputs().contains(code.node("y").unwrap()));
}
