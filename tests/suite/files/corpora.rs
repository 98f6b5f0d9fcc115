//! Files of SDPB and SDPLIB, where they lie beside the repository.

use std::fs;
use std::path::PathBuf;
use sunzi::io::{ReadOptions, read, read_info};
use sunzi::{Matrix, Result};

fn data(name: &str) -> Option<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/data").join(name);
    if !folder.exists() {
        println!("skipped: {} is not there", folder.display());
    }
    folder.exists().then_some(folder)
}

/// The matrix `B` of a program is in one file of Matrix Market, and block by block in SDPB's.
#[test]
fn blocks_of_sdpb() {
    let Some(folder) = data("sdpb") else { return };
    for (case, blocks) in [("1d", 1), ("SingletScalar_cT_test_nmax6", 11)] {
        let whole = read(folder.join(case).join("B.mtx"), &ReadOptions::new(768)).unwrap().matrix;
        let mut row = 0;
        for block in 0..blocks {
            let file = folder.join(case).join(format!("sdp/block_data_{block}.json"));
            let part = |name: &str| {
                let path = format!("{}:{name}", file.display());
                let info = read_info(&path).unwrap();
                let matrix = read(&path, &ReadOptions::new(768)).unwrap().matrix;
                assert_eq!((info.rows, info.cols), (matrix.rows(), matrix.cols()), "{path}");
                matrix
            };
            let b = part("B");
            assert!(
                b == whole.view().block(row..row + b.rows(), 0..whole.cols()).unwrap().to_matrix().unwrap(),
                "{case} {block}"
            );
            row += b.rows();
            assert_eq!((part("c").rows(), part("c").cols()), (b.rows(), 1));
            assert_eq!(
                part("bilinear_bases_even").rows() + part("bilinear_bases_odd").rows(),
                part("bilinear_bases_odd").cols()
            );
            let error = read(&file, &ReadOptions::new(768)).unwrap_err().to_string();
            assert!(error.contains("its keys are 'bilinear_bases_even', 'bilinear_bases_odd', 'c', 'B'"), "{error}");
        }
        assert_eq!(row, whole.rows());
    }
}

/// Every entry of a file, against the words of its lines.
#[test]
fn programs_of_sdplib() {
    let Some(folder) = data("sdplib") else { return };
    let mut files = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        files += 1;
        let text = fs::read_to_string(&path).unwrap();
        let mut lines = text.lines().filter(|line| !line.starts_with(['"', '*']));
        let mut numbers = || -> Vec<i64> {
            let line = lines.next().unwrap();
            let words = line.split(|letter: char| !letter.is_ascii_digit() && letter != '-');
            words.filter_map(|word| word.parse().ok()).collect()
        };
        let (constraints, _, orders) = (numbers()[0], numbers(), numbers());
        let costs: Vec<f64> =
            lines.next().unwrap().split([' ', ',', '{', '}']).filter_map(|word| word.parse().ok()).collect();
        let at = |member: String| -> Result<Matrix> {
            Ok(read(format!("{}:{member}", path.display()), &ReadOptions::new(53))?.matrix)
        };
        let c = at("c".into()).unwrap();
        assert_eq!((c.rows(), costs.len()), (constraints as usize, constraints as usize), "{}", path.display());
        assert!((0..c.rows()).all(|row| c.float(row, 0) == costs[row]));
        // The blocks of some constraints.
        let entries: Vec<Vec<&str>> = lines.map(|line| line.split_whitespace().collect()).collect();
        for constraint in [0, 1, constraints / 2, constraints] {
            for (block, order) in orders.iter().enumerate().take(2) {
                let name = format!("{constraint}/{}", block + 1);
                let matrix = at(name.clone()).unwrap();
                assert_eq!(matrix.rows() as i64, order.abs());
                let (first, second) = (constraint.to_string(), (block + 1).to_string());
                let wanted = entries.iter().filter(|words| words.len() == 5 && words[0] == first && words[1] == second);
                let mut count = 0;
                for words in wanted {
                    let (row, col): (usize, usize) = (words[2].parse().unwrap(), words[3].parse().unwrap());
                    let value: f64 = words[4].parse().unwrap();
                    assert!(
                        matrix.float(row - 1, col - 1) == value && matrix.float(col - 1, row - 1) == value,
                        "{name}"
                    );
                    count += if value == 0.0 { 0 } else { 1 + usize::from(row != col) };
                }
                let places = (0..matrix.rows()).flat_map(|row| (0..matrix.cols()).map(move |col| (row, col)));
                assert_eq!(places.filter(|&(row, col)| !matrix.get(row, col).head.is_zero()).count(), count, "{name}");
            }
        }
    }
    assert!(files >= 10, "{files} files");
}
