//! try
use sunzi::rug::Float;
use sunzi_sdp::*;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let bits: u32 = a[2].parse().unwrap();
    let threads: usize = a[3].parse().unwrap();
    let tol = a.get(4).cloned();
    let t = std::time::Instant::now();
    let problem = read_problem(a[1].as_ref(), bits).unwrap();
    println!(
        "read {:.3} s; {} variables {} rows {} free",
        t.elapsed().as_secs_f64(),
        problem.variables(),
        problem.total_rows(),
        problem.free_variables()
    );
    let ctx = sunzi::Context::builder().threads(threads).build().unwrap();
    let mut o = SolverOptions::new(problem.form);
    o.max_iterations = std::env::var("IT").map_or(1000, |v| v.parse().unwrap());
    if let Ok(v) = std::env::var("FC") {
        o.feasible_centering_parameter = Float::with_val(64, v.parse::<f64>().unwrap());
    }
    if let Ok(v) = std::env::var("GA") {
        o.step_length_reduction = Float::with_val(64, v.parse::<f64>().unwrap());
    }
    if let Ok(v) = std::env::var("IS") {
        o.initial_matrix_scale_primal = Float::with_val(64, v.parse::<f64>().unwrap());
        o.initial_matrix_scale_dual = o.initial_matrix_scale_primal.clone();
    }
    if let Some(t) = tol {
        let f = Float::with_val(256, Float::parse(t).unwrap());
        o.duality_gap_threshold = f.clone();
        o.primal_error_threshold = f.clone();
        o.dual_error_threshold = f;
    }
    let verbose = std::env::var("V").is_ok();
    if std::env::var("JUMP").is_ok() {
        o.detect_primal_feasible_jump = true;
        o.detect_dual_feasible_jump = true;
        let f = Float::with_val(256, Float::parse("1e-200").unwrap());
        o.primal_error_threshold = f.clone();
        o.dual_error_threshold = f;
    }
    let solver = Solver::new(ctx, &problem, o).unwrap();
    let t = std::time::Instant::now();
    let s = solver.run(solver.begin().unwrap(), |i, _| { if verbose { println!("{:4} {:8.3} mu {:.2e} p {:.8e} d {:.8e} gap {:.2e} P {:.1e} p {:.1e} D {:.1e} steps {:.3} {:.3} beta {:.3}", i.number, i.seconds.1, i.mu.to_f64(), i.quality.primal_objective.to_f64(), i.quality.dual_objective.to_f64(), i.quality.gap.to_f64(), i.quality.primal_matrix_error.to_f64(), i.quality.primal_free_error.to_f64(), i.quality.dual_error.to_f64(), i.primal_step.to_f64(), i.dual_step.to_f64(), i.beta.to_f64()); } Ok(Control::Continue) }).unwrap();
    println!(
        "{} {}: {} iterations {:.3} s\n  P {:.32e}\n  D {:.32e}\n  gap {:.2e} perr {:.2e} derr {:.2e} {:?}",
        a[1].rsplit('/').next().unwrap(),
        s.termination,
        s.iterations,
        t.elapsed().as_secs_f64(),
        s.quality.primal_objective,
        s.quality.dual_objective,
        s.quality.gap.to_f64(),
        s.quality.primal_error().to_f64(),
        s.quality.dual_error.to_f64(),
        s.remark
    );
    println!("  {:?}", s.phases);
}
