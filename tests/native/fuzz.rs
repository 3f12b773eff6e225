//! Random programs in index notation: both drivers do what a naive evaluator says.
//!
//! `WGSLAB_PROGRAM_FUZZ=20000 cargo test --release --test native fuzz::random -- --nocapture` runs more than the few hundred
//! of every test run; `WGSLAB_SEED=n` begins elsewhere, so that processes share a range; `WGSLAB_SHOW_REFUSED=1` prints the
//! statements that the checker refuses; `WGSLAB_FUZZ_WAY=every` sends each program on the GPU in every way, `"each schedule"`
//! in each schedule of its kernels with both binding plans, and other names of the table in `tests/common/fuzz/ways.rs` in one
//! way. Every way takes half a second of a core for a program, nearly all of it in the driver's compiler. A program that fails
//! is cut down to what it takes. `GALLIVM_PERF=nopt` keeps llvmpipe from optimising, which is three times as fast.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::time::Instant;

use crate::common::fuzz::{APART_BYTES, Count, Devices, Ways, check_seed};
use crate::common::grow::grow;
use crate::{open, open_wide, open_with};
use wgslab::notation::ast::{Accumulate, Function};
use wgslab::notation::program::{ExprKind, Position, Program, Term, Ty, Write};
use wgslab::{DType, gpu, host};

/// Programs per pair of devices.
const BATCH: u64 = 250;

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|error| panic!("{variable}={text}: {error}")))
}

fn open_all(ways: Ways) -> Devices<host::Host, gpu::Gpu> {
    let apart = gpu::OpenOptions {
        limits: gpu::LimitsChoice::Default,
        segment_cap_bytes: Some(APART_BYTES[0]),
        heap_bytes: Some(APART_BYTES[1]),
        ..gpu::OpenOptions::default()
    };
    let host = host::open(host::OpenOptions::default()).unwrap();
    Devices { host, gpu: open(), wide: open_wide(), apart: open_with(apart), ways }
}

#[test]
fn random_programs_mean_the_same_on_both_drivers() {
    let programs = number("WGSLAB_PROGRAM_FUZZ").unwrap_or(200);
    let first = number("WGSLAB_SEED").unwrap_or(0);
    let ways = Ways::named(std::env::var("WGSLAB_FUZZ_WAY").ok().as_deref());
    let (start, mut count, mut failures) = (Instant::now(), Count::default(), Vec::new());
    // Past the test harness, which keeps what a passing test prints.
    let say = |text: String| drop(writeln!(std::io::stderr(), "fuzz: {text}"));
    for batch in (first..first + programs).step_by(BATCH as usize) {
        let devices = open_all(ways);
        for seed in batch..(batch + BATCH).min(first + programs) {
            if failures.len() >= 10 {
                break;
            }
            if let Err(text) = pollster::block_on(check_seed(seed, &devices, &mut count)) {
                say(text.clone());
                failures.push(text);
            }
        }
        if programs > BATCH {
            say(format!("before seed {}, {:.0} s, {count}", batch + BATCH, start.elapsed().as_secs_f32()));
        }
    }
    say(count.table());
    say(format!("{count}; {} failures, {:.1} s", failures.len(), start.elapsed().as_secs_f32()));
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    count.check(ways).unwrap();
}

/// What the programs of some seeds are made of.
fn count_parts(program: &Program, parts: &mut BTreeMap<String, u64>) {
    let mut add = |part: String| *parts.entry(part).or_default() += 1;
    for statement in &program.statements {
        let node = &program.nodes[statement.target];
        let scatters = statement.positions.iter().any(|position| matches!(position, Position::Computed(_)));
        add(format!("{} {:?}", node.dtype, statement.write));
        if scatters {
            add(format!("{} scatter", node.dtype));
            add(format!("{:?} scatter", statement.write));
        }
        add(format!("rank {}", node.shape.len()));
        let reduced = statement.reduced.iter().map(|index| &statement.indices[*index]);
        let reduced: i64 = reduced.map(|index| index.hi - index.lo).product();
        if !statement.reduced.is_empty() {
            add(if reduced == 0 {
                "nothing reduced"
            } else if reduced >= 256 {
                "much reduced"
            } else {
                "reduced"
            }
            .into());
        }
        let mut open = vec![&statement.value];
        while let Some(expr) = open.pop() {
            match &expr.kind {
                ExprKind::Const(_) => add("constant".into()),
                ExprKind::Index(_) => add("index".into()),
                ExprKind::Static(_) => add("static".into()),
                ExprKind::Stage(_) => unreachable!("programs have no stages"),
                ExprKind::Load(load) => {
                    add(format!("load {}", program.nodes[load.node].dtype));
                    if load.node == statement.target {
                        let is_same = load.positions == statement.positions;
                        add(if is_same { "the target in place" } else { "the target elsewhere" }.into());
                    }
                    if let Some(pad) = &load.pad {
                        add("pad".into());
                        open.push(pad);
                    }
                    for position in &load.positions {
                        match position {
                            Position::Computed(expr) => {
                                add(format!("gather {:?}", expr.ty));
                                open.push(expr);
                            }
                            Position::Affine(affine) => {
                                let statics = affine.terms.iter().any(|(term, _)| matches!(term, Term::Static(_)));
                                let steps = affine.terms.iter().any(|(_, factor)| *factor != 1);
                                let kind =
                                    [(statics, "by a static"), (steps, "by steps"), (affine.terms.len() > 1, "by two")];
                                kind.iter().filter(|(is, _)| *is).for_each(|(_, kind)| add((*kind).into()));
                            }
                        }
                    }
                }
                ExprKind::Unary(op, a) => {
                    add(format!("{op:?} {:?}", a.ty));
                    open.push(a);
                }
                ExprKind::Binary(op, a, b) => {
                    add(format!("{op:?} {:?}", a.ty));
                    open.extend([a, b]);
                }
                ExprKind::Conditional(a, b, c) => {
                    add(format!("? : {:?}", b.ty));
                    open.extend([a, b, c]);
                }
                ExprKind::Call(function, arguments) => {
                    add(format!("{} {:?}", function.name(), arguments[0].ty));
                    open.extend(arguments);
                }
                ExprKind::Cast(dtype, a) => {
                    add(format!("{dtype}({:?})", a.ty));
                    open.push(a);
                }
                ExprKind::Bitcast(a) => {
                    add(format!("bitcast {:?} {:?}", a.ty, expr.ty));
                    open.push(a);
                }
                ExprKind::Reduce { op, body, .. } => {
                    add(format!("{} {:?}", op.name(), body.ty));
                    open.push(body);
                }
            }
        }
    }
}

#[test]
fn the_programs_have_every_part_of_the_language() {
    let mut parts = BTreeMap::new();
    for seed in 0..1000 {
        count_parts(&grow(seed).program().unwrap(), &mut parts);
    }
    let mut wanted: Vec<String> = Vec::new();
    let numbers = DType::ALL.into_iter().filter(|dtype| *dtype != DType::Bool);
    for dtype in numbers {
        for op in [Accumulate::Add, Accumulate::Mul, Accumulate::Max, Accumulate::Min] {
            for write in [Write::Onto(op), Write::Fresh(op)] {
                wanted.extend([format!("{dtype} {write:?}"), format!("{dtype} scatter"), format!("{write:?} scatter")]);
            }
        }
    }
    for dtype in DType::ALL {
        wanted.extend([format!("{dtype} Set"), format!("load {dtype}")]);
    }
    for function in Function::ALL.iter().filter(|function| **function != Function::Select) {
        let is_random = matches!(function, Function::Threefry | Function::Uniform | Function::Normal);
        wanted.push(format!("{} {:?}", function.name(), if is_random { Ty::U32 } else { Ty::F32 }));
    }
    for ty in ["F32", "I32", "U32"] {
        let words =
            "Pow Mul Div Rem Add Sub Lt Le Gt Ge Eq Ne Neg abs sign min max clamp pow relu sum prod argmax argmin ?_:";
        wanted.extend(words.split(' ').map(|word| format!("{} {ty}", word.replace('_', " "))));
        // The checker makes a float of an integer before it rounds.
        let is_cast = |dtype: &DType| ty == "F32" || !matches!(dtype, DType::F16 | DType::BF16);
        wanted.extend(DType::ALL.iter().filter(|dtype| is_cast(dtype)).map(|dtype| format!("{dtype}({ty})")));
    }
    for ty in ["I32", "U32"] {
        let words = "Shl Shr BitAnd BitXor BitOr BitNot gather";
        wanted.extend(words.split(' ').map(|word| format!("{word} {ty}")));
    }
    let words = "And Bool;Or Bool;Not Bool;Eq Bool;Ne Bool;? : Bool;static;index;pad;by a static;by steps;by two;nothing reduced;\
                 much reduced;reduced;the target in place;the target elsewhere;rank 0;rank 1;rank 2;rank 3;rank 4";
    wanted.extend(words.split(';').map(str::to_owned));
    let missing: Vec<&String> = wanted.iter().filter(|part| !parts.contains_key(*part)).collect();
    assert!(missing.is_empty(), "{missing:?} of {parts:?}");
}
