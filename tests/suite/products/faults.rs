//! Damage on purpose: a fault in one residue plane is caught by the self-check or changes no bit; wrong results and
//! single wrong entries are caught by the verification.
//!
//! Faults go into the product window between the products and the reconstruction: flipped bits, other residues,
//! other representations of the same residue, garbage words, not-a-numbers, whole planes. A fault stays within one
//! prime's plane, as the redundant prime promises no more.

use crate::common::oracle::{Factors, expected, expected_integers, squared_norms};
use crate::common::{KINDS, Rng, copy_residue, effort, forced, integer_matrix, kernel_names, matrix, residue};
use rug::{Float, Integer};
use std::sync::Mutex;
use sunzi::advanced::Hooks;
use sunzi::verify::{VerifyOptions, freivalds_gemm, freivalds_syrk, verify_syrk};
use sunzi::{Accuracy, Context, Error, GemmOptions, Matrix, Op, Symmetric, SyrkOptions, Uplo, gemm_with, syrk_with};

/// What is done to one word, or to all words of a plane.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Fault {
    FlipBit,
    FlipTwoBits,
    OtherWordOfPlane,
    AddModulus,
    Garbage,
    LargeDouble,
    NotANumber,
    Zero,
    GarbagePlane,
    RotatePlane,
}

const FAULTS: [Fault; 10] = [
    Fault::FlipBit,
    Fault::FlipTwoBits,
    Fault::OtherWordOfPlane,
    Fault::AddModulus,
    Fault::Garbage,
    Fault::LargeDouble,
    Fault::NotANumber,
    Fault::Zero,
    Fault::GarbagePlane,
    Fault::RotatePlane,
];

impl Fault {
    /// Damages one word, or the plane it is in.
    fn strike(self, plane: &mut [u64], at: usize, rng: &mut Rng) {
        let word = plane[at];
        plane[at] = match self {
            Fault::FlipBit => word ^ (1 << rng.below(64)),
            Fault::FlipTwoBits => word ^ (1 << rng.below(64)) ^ (1 << rng.below(64)),
            Fault::OtherWordOfPlane => plane[rng.below(plane.len())],
            // For the integer families this lands at or above most moduli: another representation, or another residue.
            Fault::AddModulus => word.wrapping_add((1 << 52) - rng.below(1 << 14) as u64),
            Fault::Garbage => rng.word(),
            Fault::LargeDouble => (rng.within(1 << 40) as f64 * 2f64.powi(rng.below(900) as i32)).to_bits(),
            Fault::NotANumber => rng.pick(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -f64::NAN]).to_bits(),
            Fault::Zero => 0,
            Fault::GarbagePlane => {
                plane.iter_mut().for_each(|word| *word = rng.word());
                return;
            }
            Fault::RotatePlane => {
                plane.rotate_left(1);
                return;
            }
        };
    }
}

/// One operand with its clean result.
struct Case {
    p: Matrix,
    precision_bits: u32,
    exact_integers: bool,
    clean: Matrix,
}

impl Case {
    fn options(&self) -> SyrkOptions<'static> {
        SyrkOptions::new().accuracy(Accuracy::Norm).exact_integers(self.exact_integers)
    }
}

fn cases(ctx: &Context) -> Vec<Case> {
    (0..40u64)
        .map(|index| {
            let mut rng = Rng::new(index);
            let (rows, cols) = (1 + rng.below(9), 1 + rng.below(20));
            let precision_bits = rng.pick(&[53, 64, 100, 190, 500]);
            let exact_integers = index % 4 == 3;
            let p = match exact_integers {
                true => integer_matrix(rows, cols, rng.pick(&[8, 60, 130]), index),
                false => matrix(KINDS[index as usize % KINDS.len()], rows, cols, precision_bits, index),
            };
            let mut case = Case { p, precision_bits, exact_integers, clean: Matrix::zeros(0, 0, 2).unwrap() };
            case.clean = syrk_with(ctx, &case.p, precision_bits, &case.options()).unwrap().result.into_matrix();
            case
        })
        .collect()
}

/// Strikes once in a random plane of a random case; whether the self-check caught it.
fn trial(ctx: &Context, cases: &[Case], seed: u64) -> (Fault, bool) {
    let rng = Mutex::new(Rng::new(seed));
    let (case, fault) = {
        let mut rng = rng.lock().unwrap();
        (&cases[rng.below(cases.len())], rng.pick(&FAULTS))
    };
    let strike = |window: &mut [u64], plane_words: usize| {
        let mut rng = rng.lock().unwrap();
        let planes = window.len() / plane_words;
        let plane = rng.below(planes);
        let at = rng.below(plane_words);
        fault.strike(&mut window[plane * plane_words..][..plane_words], at, &mut rng);
    };
    match syrk_with(ctx, &case.p, case.precision_bits, &case.options().hooks(Hooks::fault(&strike))) {
        Ok(outcome) => {
            assert!(outcome.report.checked);
            let kernel = outcome.report.kernel;
            assert!(outcome.result == case.clean, "{kernel}, seed {seed}: {fault:?} changed the result uncaught");
            (fault, false)
        }
        Err(Error::SelfCheck { row, column }) => {
            let cols = case.p.cols();
            assert!(
                column <= row && row < cols,
                "seed {seed}: entry ({row}, {column}) of {cols} is not in the triangle"
            );
            (fault, true)
        }
        Err(error) => panic!("seed {seed}: {fault:?} ended as: {error}"),
    }
}

#[test]
fn a_fault_in_a_plane_is_caught_or_changes_nothing() {
    for kernel in kernel_names() {
        let ctx = forced(kernel, 1).self_check(true).build().unwrap();
        let cases = cases(&ctx);
        let mut caught = FAULTS.map(|fault| (fault, 0u64, 0u64));
        for seed in 0..1_000 * effort() {
            let (fault, found) = trial(&ctx, &cases, seed);
            let entry = caught.iter_mut().find(|entry| entry.0 == fault).unwrap();
            entry.1 += u64::from(found);
            entry.2 += 1;
        }
        println!("{kernel}: caught of trials {caught:?}");
        for (fault, found, trials) in caught {
            // Words beyond the matrix's edge and in the unused half of diagonal blocks cannot matter.
            let least = if fault == Fault::GarbagePlane { trials / 2 } else { 1 };
            assert!(found >= least, "{kernel}: {fault:?} was caught in {found} of {trials} trials");
        }
    }
}

#[test]
fn a_changed_residue_is_caught_at_its_entry() {
    for kernel in kernel_names() {
        let ctx = forced(kernel, 1).self_check(true).build().unwrap();
        for seed in 0..150 * effort() {
            let mut rng = Rng::new(seed);
            let cols = 2 + rng.below(7);
            let p = matrix(KINDS[seed as usize % 2], 6, cols, 120, seed);
            let (col, plane) = (rng.below(cols), rng.word() as usize);
            let row = col + rng.below(cols - col);
            // Entry (row, col) of the only block: any two residues of a plane that differ in bits and are both in the
            // kernel's form differ as residues, but for the two zeros of a double.
            let changed = Mutex::new(false);
            let strike = |window: &mut [u64], plane_words: usize| {
                let first = plane % (window.len() / plane_words) * plane_words;
                let plane = &mut window[first..][..plane_words];
                let (entry, other) = (8 * col + row, (8 * col + row + 1) % 64);
                let [old, new] = [entry, other].map(|at| residue(plane, 1, at).to_vec());
                let is_zero = |bytes: &[u8]| {
                    let (last, rest) = bytes.split_last().unwrap();
                    last & 0x7f == 0 && rest.iter().all(|&byte| byte == 0)
                };
                *changed.lock().unwrap() = new != old && !(is_zero(&old) && is_zero(&new));
                copy_residue(plane, 1, (other, entry));
            };
            let outcome =
                syrk_with(&ctx, &p, 120, &SyrkOptions::new().accuracy(Accuracy::Norm).hooks(Hooks::fault(&strike)));
            if *changed.lock().unwrap() {
                let found = matches!(outcome, Err(Error::SelfCheck { row: r, column: c }) if (r, c) == (row, col));
                assert!(found, "{kernel}, seed {seed}: entry ({row}, {col}): {outcome:?}");
            } else {
                assert!(outcome.is_ok());
            }
        }
    }
}

#[test]
fn without_the_check_the_same_faults_do_change_results() {
    for kernel in kernel_names() {
        let ctx = forced(kernel, 1).build().unwrap();
        let p = matrix(KINDS[0], 6, 5, 120, 3);
        let clean = syrk_with(&ctx, &p, 120, &SyrkOptions::new().accuracy(Accuracy::Norm)).unwrap().result;
        let strike = |window: &mut [u64], plane_words: usize| copy_residue(&mut window[..plane_words], 1, (1, 0));
        let outcome =
            syrk_with(&ctx, &p, 120, &SyrkOptions::new().accuracy(Accuracy::Norm).hooks(Hooks::fault(&strike)))
                .unwrap();
        assert!(!outcome.report.checked && outcome.result != clean, "{kernel}: the hook does not reach the window");
    }
}

#[test]
fn a_fault_in_all_planes_passes_the_redundant_prime_but_not_freivalds() {
    for kernel in kernel_names() {
        let p = matrix(KINDS[0], 60, 20, 200, 5);
        // Entry (9, 8) becomes entry (10, 8), in every plane: an integer as good as any other.
        let strike = |window: &mut [u64], plane_words: usize| {
            window.chunks_exact_mut(plane_words).for_each(|plane| copy_residue(plane, 6, (3 * 64 + 2, 3 * 64 + 1)));
        };
        let run = |ctx: &Context| {
            syrk_with(ctx, &p, 200, &SyrkOptions::new().accuracy(Accuracy::Norm).hooks(Hooks::fault(&strike)))
        };
        let clean =
            syrk_with(&forced(kernel, 1).build().unwrap(), &p, 200, &SyrkOptions::new().accuracy(Accuracy::Norm))
                .unwrap()
                .result;
        let fooled = run(&forced(kernel, 2).self_check(true).build().unwrap()).unwrap().result;
        assert!(fooled != clean && fooled.float(9, 8) == clean.float(10, 8), "{kernel}");
        for threads in [1, 3] {
            let found = run(&forced(kernel, threads).freivalds(true).build().unwrap()).unwrap_err();
            assert!(matches!(&found, Error::Verification(text) if text.starts_with("row 8 ")), "{kernel}: {found}");
            assert_eq!(found.exit_code(), 5);
        }
    }
}

#[test]
fn faults_in_a_general_product_are_found_too() {
    for kernel in kernel_names() {
        let (a, b) = (matrix(KINDS[0], 50, 21, 150, 7), matrix(KINDS[1], 50, 34, 150, 8));
        let options = GemmOptions::new().accuracy(Accuracy::Norm).op_a(Op::Transpose);
        let one_plane = |window: &mut [u64], plane_words: usize| {
            copy_residue(&mut window[plane_words..2 * plane_words], 15, (11, 10));
        };
        let all_planes = |window: &mut [u64], plane_words: usize| {
            window.chunks_exact_mut(plane_words).for_each(|plane| copy_residue(plane, 15, (11, 10)));
        };
        let checked = forced(kernel, 2).self_check(true).build().unwrap();
        let found = gemm_with(&checked, &a, &b, 150, &options.clone().hooks(Hooks::fault(&one_plane))).unwrap_err();
        assert!(matches!(found, Error::SelfCheck { row: 2, column: 1 }), "{kernel}: {found}");
        let tested = forced(kernel, 2).freivalds(true).build().unwrap();
        for fault in [&one_plane as &(dyn Fn(&mut [u64], usize) + Sync), &all_planes] {
            let found = gemm_with(&tested, &a, &b, 150, &options.clone().hooks(Hooks::fault(fault))).unwrap_err();
            assert!(matches!(&found, Error::Verification(text) if text.starts_with("row 2 ")), "{kernel}: {found}");
        }
    }
}

#[test]
fn freivalds_accepts_every_right_product() {
    for kernel in kernel_names() {
        for (seed, threads) in [(1, 1), (2, 3)] {
            let (p, b) = (matrix(KINDS[1], 41, 30, 150, seed), matrix(KINDS[0], 41, 19, 90, seed + 9));
            let integers = integer_matrix(33, 26, 100, seed);
            for limit in [None, Some(500 << 10)] {
                let builder = forced(kernel, threads).freivalds(true);
                let ctx = limit.map_or(builder.clone(), |bytes| builder.memory_bytes(bytes)).build().unwrap();
                let plain = forced(kernel, threads).build().unwrap();
                for op in [Op::NoTranspose, Op::Transpose] {
                    for uplo in [Uplo::Lower, Uplo::Upper] {
                        let options = SyrkOptions::new().accuracy(Accuracy::Norm).op(op).uplo(uplo);
                        let found = syrk_with(&ctx, &p, 150, &options).unwrap();
                        assert!(
                            found.report.checked
                                && found.result == syrk_with(&plain, &p, 150, &options).unwrap().result
                        );
                        let exact = options.exact_integers(true);
                        syrk_with(&ctx, &integers, 64, &exact).unwrap();
                    }
                }
                let transposed = GemmOptions::new().accuracy(Accuracy::Norm).op_a(Op::Transpose);
                gemm_with(&ctx, &p, &b, 150, &transposed).unwrap();
            }
        }
    }
}

#[test]
fn freivalds_catches_a_change_of_one_in_any_entry() {
    let ctx = Context::builder().threads(2).build().unwrap();
    let options = VerifyOptions::new().op(Op::Transpose).exact_integers(true);
    for seed in 0..6 * effort() {
        let (rows, cols) = (9, 12);
        let p = integer_matrix(rows, cols, 100, seed);
        let exact = SyrkOptions::new().accuracy(Accuracy::Norm).op(Op::Transpose).exact_integers(true);
        let q = syrk_with(&ctx, &p, 64, &exact).unwrap().result;
        freivalds_syrk(&ctx, &p, &q, &options).unwrap();
        let mut wrong = q.clone().into_matrix();
        for col in 0..rows {
            for row in col..rows {
                let value = q.get(row, col).to_integer().unwrap();
                for step in [-1, 1] {
                    wrong.set_integer_exponent(row, col, &Integer::from(&value + step), 0).unwrap();
                    let outcome = freivalds_syrk(&ctx, &p, Symmetric::lower(&wrong), &options);
                    assert!(matches!(outcome, Err(Error::Verification(_))), "seed {seed}, ({row}, {col}) {step}");
                }
                wrong.set_integer_exponent(row, col, &value, 0).unwrap();
            }
        }
        assert!(wrong == q);
        let product = expected_integers(&p.transposed(), &p.transposed(), &q, Factors::default());
        freivalds_gemm(&ctx, (&p, p.transposed()), &product, &VerifyOptions::default()).unwrap();
    }
}

#[test]
fn verify_accepts_every_result_and_catches_an_entry_beyond_its_bound() {
    let ctx = Context::builder().threads(2).build().unwrap();
    for seed in 0..4 * effort() {
        for kind in KINDS {
            let mut rng = Rng::new(seed);
            let p = matrix(kind, 24, 9, 100, seed);
            let full = expected(&p.view(), &p.view(), 80, Factors::default());
            let options = VerifyOptions::new().seed(seed);
            let result = syrk_with(&ctx, &p, 80, &SyrkOptions::new().accuracy(Accuracy::Norm)).unwrap().result;
            verify_syrk(&ctx, &p, &result, 80, &options).unwrap_or_else(|error| panic!("{kind:?}, {seed}: {error}"));
            let squares = squared_norms(&p.view());
            let col = rng.below(9);
            let row = col + rng.below(9 - col);
            // The bound of the entry, and a step that lands just beyond it whatever the rounding has used up.
            let unit = (squares[row].round(200) * squares[col].round(200)).sqrt() >> 79u32;
            let mut wide = Matrix::zeros(9, 9, 900).unwrap();
            for c in 0..9 {
                for r in c..9 {
                    wide.set_float(r, c, &full.float(r, c)).unwrap();
                }
            }
            let step = Float::with_val(200, unit * 2.01);
            let value = Float::with_val(900, full.float(row, col) + &step);
            wide.set_float(row, col, &value).unwrap();
            let outcome = verify_syrk(&ctx, &p, Symmetric::lower(&wide), 80, &options);
            let zero = squares[row].integer == 0 || squares[col].integer == 0;
            assert_eq!(outcome.is_ok(), zero, "{kind:?}, seed {seed}, ({row}, {col}): {outcome:?}");
            if !zero {
                let Err(Error::Verification(text)) = outcome else { panic!("not an outcome of verification") };
                assert!(text.contains(&format!("row {row}, column {col} ")), "{text}");
            }
        }
    }
}
