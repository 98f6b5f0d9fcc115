//! timing
use std::time::Instant;
use sunzi::*;
fn time(name: &str, f: &mut dyn FnMut()) {
    f();
    let mut best = f64::MAX;
    for _ in 0..5 {
        let t = Instant::now();
        f();
        best = best.min(t.elapsed().as_secs_f64());
    }
    println!("  {name:40} {:10.1} us", best * 1e6);
}
fn main() {
    let threads = std::env::args().nth(1).map_or(1, |t| t.parse().unwrap());
    let ctx = Context::builder().threads(threads).build().unwrap();
    for (n, bits) in [(10usize, 256u32), (16, 768), (16, 256), (40, 256), (100, 256), (161, 256), (500, 256)] {
        println!("n {n} bits {bits}");
        let spread =
            |s: u64| gallery::counter_random(gallery::Size { rows: n, cols: n, precision_bits: bits }, 3, s).unwrap();
        let (a, b) = (spread(1), spread(2));
        let big = syrk(&ctx, &a, bits).unwrap();
        let ew = GemmOptions::new().accuracy(Accuracy::Entrywise);
        if n < 300 {
            time("gemm norm", &mut || {
                gemm(&ctx, &a, &b, bits).unwrap();
            });
            time("gemm entrywise", &mut || {
                gemm_with(&ctx, &a, &b, bits, &ew).unwrap();
            });
            time("gemm transposed b entrywise", &mut || {
                gemm_with(&ctx, &a, b.transposed(), bits, &ew).unwrap();
            });
            time("gemm_batch 8 entrywise", &mut || {
                gemm_batch_with(&ctx, (0..8).map(|_| (&a, &b)), bits, &ew).unwrap();
            });
            time("syrk entrywise", &mut || {
                syrk_with(&ctx, &a, bits, &SyrkOptions::new().accuracy(Accuracy::Entrywise)).unwrap();
            });
        }
        let co = CholeskyOptions::new().accuracy(Accuracy::Entrywise);
        time("cholesky entrywise", &mut || {
            cholesky_with(&ctx, &big, bits, &co).unwrap();
        });
        time("cholesky norm", &mut || {
            cholesky(&ctx, &big, bits).unwrap();
        });
        let l = cholesky_with(&ctx, &big, bits, &co).unwrap().result;
        let v = b.view().block(0..n, 0..1).unwrap();
        time("solve 1 column", &mut || {
            l.solve(&ctx, v, bits).unwrap();
        });
        let to = TrsmOptions::new().accuracy(Accuracy::Entrywise);
        time("trsm 1 column", &mut || {
            trsm_with(&ctx, l.factor(), v, bits, &to).unwrap();
        });
        if n < 300 {
            time("inverse of factor", &mut || {
                l.inverse(&ctx, bits).unwrap();
            });
            time("solve n", &mut || {
                l.solve(&ctx, &b, bits).unwrap();
            });
            time("trsm left entrywise", &mut || {
                trsm_with(&ctx, l.factor(), &b, bits, &to).unwrap();
            });
            let id = Matrix::identity(n, bits).unwrap();
            time("trsm identity", &mut || {
                trsm_with(&ctx, l.factor(), &id, bits, &to).unwrap();
            });
            time("trmm", &mut || {
                trmm(&ctx, l.factor(), &b, bits).unwrap();
            });
            time("add (rug)", &mut || {
                a.add(&b, bits).unwrap();
            });
            let (x, y) = (&a, &b);
            let flat = |m: &'static str| m;
            let _ = flat;
            let xv = MatrixView::from_parts(x.parts(), (n * n, 1), n * n, bits).unwrap();
            let yv = MatrixView::from_parts(y.parts(), (n * n, 1), n * n, bits).unwrap();
            let alpha = rug::Float::with_val(bits, 0.7).sqrt();
            time("axpy flat", &mut || {
                axpy(&ctx, &alpha, xv, yv, bits).unwrap();
            });
            time("dot flat", &mut || {
                dot(&ctx, xv, yv, bits).unwrap();
            });
            time("extreme_eigenvalue 20 bits", &mut || {
                extreme_eigenvalue(&ctx, Symmetric::lower(&a), 20).unwrap();
            });
            time("pencil_eigenvalue 20 bits", &mut || {
                pencil_eigenvalue(&ctx, l.factor(), Symmetric::lower(&a), 20).unwrap();
            });
            time("to_floats", &mut || {
                a.view().to_floats();
            });
            let f = a.view().to_floats();
            let mut acc = rug::Float::new(bits);
            let mut tmp = rug::Float::new(bits);
            time("1000 rug mul+add", &mut || {
                for i in 0..1000 {
                    use rug::Assign;
                    tmp.assign(&f[i % f.len()] * &f[(i * 7) % f.len()]);
                    acc += &tmp;
                }
            });
            let p = gallery::counter_random(gallery::Size { rows: n, cols: 31, precision_bits: bits }, 3, 5).unwrap();
            time("gemm n x n x 31 ew", &mut || {
                gemm_with(&ctx, &a, &p, bits, &ew).unwrap();
            });
            time("syrk n x 31 ew", &mut || {
                syrk_with(&ctx, &p, bits, &SyrkOptions::new().accuracy(Accuracy::Entrywise)).unwrap();
            });
        }
    }
}
