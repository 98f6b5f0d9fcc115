use sunzi::{Context, Matrix};
use std::time::Instant;
fn spd(n: usize, bits: u32) -> Matrix {
    use rug::{Float, Integer, rand::RandState};
    let mut rng = RandState::new(); rng.seed(&Integer::from(n as u64 + 7*bits as u64));
    let mut v = vec![Float::new(bits); n*n];
    for j in 0..n { for i in j..n {
        let mut x: Float = Float::with_val(bits, Float::random_bits(&mut rng)) - 0.5;
        if i==j { x += (n as f64).sqrt()*1.5; }
        v[i+j*n]=x.clone(); v[j+i*n]=x;
    }}
    Matrix::from_floats(n,n,bits,&v).unwrap()
}
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let mode=&a[1];
    if mode=="check" {
        let ctx = Context::builder().threads(a[2].parse().unwrap()).build().unwrap();
        for bits in [2u32,10,53,100,256,300,512,1024] { for n in [1usize,2,3,7,8,9,15,16,17,31,33,40,65,100] {
            if bits>=512 && n>65 {continue}
            let m=spd(n,bits);
            let want=sunzi::ops::cholesky::cholesky_reference(&m,bits,Default::default());
            for tile in [Some(8),Some(16),Some(40),None] {
            let got=sunzi::cholesky_with(&ctx,&m,bits,&sunzi::CholeskyOptions{tile_rows:tile,..Default::default()});
            match (&want,&got) { (Ok(w),Ok(g)) => if w.factor()!=g.factor() {
                println!("DIFF n={n} bits={bits} tile={tile:?}");
                let mut k=0; for j in 0..n { for i in j..n { if w.factor().get(i,j)!=g.factor().get(i,j) && k<5 { k+=1; println!("  ({i},{j}) {:?} {:?}", w.factor().float(i,j).to_f64(), g.factor().float(i,j).to_f64()); }}}
            }, (Err(w),Err(g)) => if w.to_string()!=g.to_string() { println!("ERR n={n} bits={bits} tile={tile:?}: {w} | {g}") }, (w,g)=>println!("MIX n={n} bits={bits} tile={tile:?} {:?} {:?}", w.as_ref().err().map(|e|e.to_string()), g.as_ref().err().map(|e|e.to_string())) }
            }
        }}
        println!("checked");
    } else {
        let n:usize=a[2].parse().unwrap(); let bits:u32=a[3].parse().unwrap(); let t:usize=a[4].parse().unwrap();
        let tiles:Vec<Option<usize>>=if a.len()>5 {a[5].split(',').map(|x|Some(x.parse().unwrap())).collect()} else {vec![None]};
        let runs:usize=a.get(6).map_or(3,|x|x.parse().unwrap());
        let ctx = Context::builder().threads(t).build().unwrap();
        let m=spd(n,bits);
        let rate=sunzi::kernels::instruction_rate(20).unwrap();
        let mut best=vec![(1e9,Default::default());tiles.len()];
        for _ in 0..runs { for (i,tile) in tiles.iter().enumerate() {
            let s=Instant::now();
            let c=sunzi::cholesky_with(&ctx,&m,bits,&sunzi::CholeskyOptions{tile_rows:*tile,..Default::default()}).unwrap();
            let e=s.elapsed().as_secs_f64();
            if e<best[i].0 { best[i]=(e,c.report().tasks); }
        }}
        let primes=(2*(bits+2)+3)/52+1;
        let limit=(n as f64).powi(3)/6.0*primes as f64*2.0/8.0/rate/t as f64;
        for (i,b) in best.iter().enumerate() { println!("n {n} bits {bits} tile {:?}: {:.4} s, limit {:.4} ratio {:.2} ; {:?}", tiles[i], b.0, limit, b.0/limit, b.1); }
    }
}
