//! Sizes of engines, refusals of wrappers, and the C sources themselves.

use super::super::{DeviceDigits, DeviceReconstruct, Residues, ToPlanes, kernels};
use super::{Integers, PRECISIONS, Rig};
use crate::error::Error;
use crate::kernels::EngineSpec;
use crate::kernels::device::{DeviceEngine, DeviceFamily};
use rug::Integer;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;

#[test]
fn engines_have_as_many_moduli_as_they_need() {
    for family in DeviceFamily::ALL {
        for bits in PRECISIONS {
            for redundant in [false, true] {
                let spec = EngineSpec { operand_bits: bits, modulus_bits: 2 * bits + 2, redundant };
                let engine = DeviceEngine::new(family, &spec).unwrap();
                let largest = *engine.moduli().iter().max().unwrap();
                let product = engine.moduli().iter().fold(Integer::from(1), |product, &modulus| product * modulus);
                let sure = if redundant { Integer::from(&product / largest) } else { product.clone() };
                assert!(sure > Integer::from(1) << spec.modulus_bits);
                assert_eq!(
                    (engine.moduli().len(), engine.plane_count()),
                    (family.modulus_count(&spec), family.plane_count(&spec))
                );
                assert!(Integer::from(1) << (32 * engine.words() as u32 - 1) > product);
                assert!(32 * engine.digits() as u32 > bits && 32 * (engine.digits() as u32 - 1) <= bits);
                assert_eq!(engine.limbs(), engine.words().div_ceil(2));
                let rig = Rig::of_spec(family, &spec);
                assert_eq!(rig.engine.table_bytes() as u64, crate::device::DeviceStatus::used_bytes(&rig.device));
            }
        }
    }
}

#[test]
fn a_family_has_an_end() {
    for family in DeviceFamily::ALL {
        let maximum = family.maximum_modulus_bits();
        let spec = |modulus_bits: u32| EngineSpec { operand_bits: 5040, modulus_bits, redundant: true };
        assert!(DeviceEngine::new(family, &spec(maximum)).is_ok());
        let refused = DeviceEngine::new(family, &spec(maximum + 1)).err();
        assert!(matches!(refused, Some(Error::Precision { .. })), "{refused:?}");
    }
}

#[test]
fn wrappers_refuse_regions_that_do_not_fit() {
    let refused = |call: &dyn Fn()| catch_unwind(AssertUnwindSafe(call)).is_err();
    let rig = Rig::new(DeviceFamily::I8, 64);
    let (launcher, count) = (rig.launcher(), rig.engine.moduli().len());
    let bytes = launcher.integer_bytes(3);
    let memory = rig.dirty(bytes + count * 6 + 2).whole();
    let reconstruct = |residues: &crate::device::Region, integers: &crate::device::Region| {
        let residues = Residues { region: residues, first_modulus: 0, stride: 3, offset: 0 };
        launcher
            .reconstruct(&DeviceReconstruct { residues, integers: Integers { region: integers, entries: 3 } })
            .unwrap();
    };
    let (integers, residues) = (memory.region(0..bytes), memory.from(bytes));
    reconstruct(&residues, &integers);
    assert!(refused(&|| reconstruct(&residues.region(0..count * 6 - 1), &integers)));
    assert!(refused(&|| reconstruct(&residues, &integers.region(0..bytes - 1))));
    assert!(refused(&|| reconstruct(&residues.from(1), &integers)));
    assert!(refused(&|| reconstruct(&memory.from(bytes - 2), &integers)));

    let digits = rig.dirty(4 * 4 * 4).whole();
    let planes = rig.dirty(rig.engine.plane_count() * 4).whole();
    let to_planes = |digit_count: usize, stride: usize, moduli: std::ops::Range<usize>| {
        let digits = DeviceDigits { region: &digits, count: digit_count, stride };
        launcher.to_planes(&ToPlanes { digits, entries: 4, moduli, planes: &planes, stride: 4 }).unwrap();
    };
    to_planes(3, 4, 0..count);
    assert!(refused(&|| to_planes(4, 4, 0..count)));
    assert!(refused(&|| to_planes(3, 3, 0..count)));
    assert!(refused(&|| to_planes(3, 4, 0..count + 1)));
    assert!(refused(&|| to_planes(rig.engine.largest_digits() + 1, 4, 0..1)));
    let other = Rig::new(DeviceFamily::I8, 200);
    assert!(refused(&|| {
        super::Launcher::new(&rig.device, rig.stream, &rig.engine, &other.tables);
    }));
}

/// The text that is sent to a device has no include that needs a file, and compiles as C without a warning.
#[test]
fn the_sources_are_strict_c() {
    for kernel in kernels() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kernel.c");
        // Names that the host does not define must not be needed: the include finds nothing here, and guards itself.
        std::fs::write(&path, kernel.source).unwrap();
        std::fs::write(folder.path().join("common.h"), "").unwrap();
        let flags = ["-std=c11", "-Wall", "-Wextra", "-Wshadow", "-Wsign-compare", "-Werror", "-fsyntax-only"];
        let done = Command::new("cc").args(flags).arg(&path).output().expect("the compiler that built the library");
        assert!(done.status.success(), "{}: {}", kernel.name, String::from_utf8_lossy(&done.stderr));
        assert!(kernel.source.contains(&format!("KERNEL({})", kernel.name.strip_prefix("sunzi_").unwrap())));
        assert!(kernel.source.lines().count() < 500 && kernel.source.is_ascii());
    }
}
