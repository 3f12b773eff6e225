//! Bounds, solved ranges and `=` against the enumeration of all points of small programs.

use super::{checked, parse};
use crate::notation::program::{Affine, Position, Term};

/// Numbers that look random, the same in each run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, count: u64) -> i64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % count) as i64
    }
}

fn value(affine: &Affine, point: &[i64]) -> i64 {
    let terms = affine.terms.iter().map(|&(term, factor)| match term {
        Term::Index(index) => factor * point[index],
        Term::Static(_) => panic!("a static"),
    });
    affine.constant + terms.sum::<i64>()
}

fn points(ranges: &[(i64, i64)]) -> Vec<Vec<i64>> {
    let mut points = vec![Vec::new()];
    for &(lo, hi) in ranges {
        let longer = |point: &Vec<i64>| (lo..hi).map(|last| [&point[..], &[last]].concat()).collect::<Vec<_>>();
        points = points.iter().flat_map(longer).collect();
    }
    points
}

fn distinct(mut elements: Vec<Vec<i64>>) -> bool {
    let count = elements.len();
    elements.sort();
    elements.dedup();
    elements.len() == count
}

#[test]
fn what_set_accepts_writes_each_element_once() {
    let mut numbers = Numbers(7);
    let (mut accepted, mut refused, mut unseen) = (0, 0, 0);
    for _ in 0..3000 {
        let mut next = |count| numbers.next(count);
        let sizes = [1 + next(4), 1 + next(4), 1 + next(4)];
        let axis = |f: [i64; 3]| format!("{} * i + {} * j + {} * k + 40", f[0], f[1], f[2]);
        let (one, two) = ([next(9) - 2, next(5) - 1, next(4)], [next(3) - 1, next(3) - 1, next(2)]);
        let [i, j, k] = sizes;
        let text =
            format!("y: f32[200, 200]\ny[{}, {}] = 1 where i in 0:{i}, j in 0:{j}, k in 0:{k}", axis(one), axis(two));
        let all = points(&[(0, i), (0, j), (0, k)]);
        let dot = |f: [i64; 3], p: &[i64]| f[0] * p[0] + f[1] * p[1] + f[2] * p[2];
        let is_once = distinct(all.iter().map(|p| vec![dot(one, p), dot(two, p)]).collect());
        match (checked(&text), is_once) {
            (Ok(_), true) => accepted += 1,
            (Ok(program), false) => panic!("an element is written twice:\n{text}\n{program}"),
            (Err(error), _) => {
                assert!(error.diagnostics()[0].message.contains("may write one element"), "{error}");
                refused += 1;
                unseen += i32::from(is_once);
            }
        }
    }
    assert!(accepted > 500 && refused > 500, "{accepted} accepted, {refused} refused");
    assert!(unseen < accepted / 4, "{unseen} are refused though they write each element once, {accepted} are accepted");
}

#[test]
fn what_is_accepted_stays_in_bounds_and_solved_ranges_are_the_largest() {
    let mut numbers = Numbers(11);
    let (mut accepted, mut refused) = (0, 0);
    for _ in 0..3000 {
        let mut next = |count| numbers.next(count);
        let (first, second, inner) = (next(12), next(12), 1 + next(3));
        let (fa, fb, ca, cb, u) = (next(5) - 2, next(5) - 2, next(9) - 2, next(9) - 2, next(3) - 1);
        let text = format!(
            "p: f32[{first}]; q: f32[{second}]\n\
             y[i] +=! p[{fa} * i + {u} * k + {ca}] * q[{fb} * i + {cb}] where k in 0:{inner}"
        );
        parse(&text).unwrap();
        let fits = |n: i64| {
            points(&[(0, n), (0, inner)]).iter().all(|p| {
                let (a, b) = (fa * p[0] + u * p[1] + ca, fb * p[0] + cb);
                (0..first).contains(&a) && (0..second).contains(&b)
            })
        };
        // The contract in its own words: the place where i stands alone, else the largest n >= 1.
        let alone = [(fa == 1 && u == 0 && ca == 0, first), (fb == 1 && cb == 0, second)];
        let extents: Vec<i64> = alone.iter().filter(|(is_alone, _)| *is_alone).map(|&(_, extent)| extent).collect();
        let expected = match &extents[..] {
            [] if fa == 0 && fb == 0 => None,
            [] => (1..40).rev().find(|&n| fits(n)),
            [n] => Some(*n).filter(|&n| fits(n)),
            [n, m] => Some(*n).filter(|_| n == m).filter(|&n| fits(n)),
            _ => None,
        };
        match (checked(&text), expected) {
            (Ok(program), Some(n)) => {
                let statement = &program.statements[0];
                assert_eq!(i64::from(program.nodes[statement.target].shape[0]), n, "{text}\n{program}");
                let Position::Affine(left) = &statement.positions[0] else { panic!("affine") };
                assert_eq!(value(left, &[n, 0]), n);
                accepted += 1;
            }
            (Err(_), None) => refused += 1,
            (Ok(program), None) => panic!("should be refused:\n{text}\n{program}"),
            (Err(error), Some(n)) => panic!("should run over 0:{n}:\n{text}\n{error}"),
        }
    }
    assert!(accepted > 300 && refused > 300, "{accepted} accepted, {refused} refused");
}
