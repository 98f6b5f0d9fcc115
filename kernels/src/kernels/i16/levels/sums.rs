//! The sums of parts of an operand: formed at once where products of them are cut further, else while they are packed.
#![forbid(unsafe_code)]

use crate::kernels::i16::lanes::{I16Isa, I16Task, INTERLEAVED, Lanes, PAIRS};
use crate::kernels::i16::operand::{I16Operand, I16Panels, SchemeSums, Sum};
use crate::kernels::i16::rules::Rule;
use crate::plan::BLOCK;

/// Four parts of an operand.
#[derive(Clone, Copy)]
pub struct OperandQuarters<'a> {
    /// The parts.
    pub parts: [I16Panels<'a>; 4],
    /// Panels of each part.
    pub panels: usize,
    /// Rows, a multiple of [`INTERLEAVED`].
    pub depth: usize,
}

impl<'a> OperandQuarters<'a> {
    /// The four sums of a scheme: formed in `out`, if there is one, else when they are packed.
    pub fn sums(self, isa: I16Isa, scheme: SchemeSums, out: Option<&'a mut [i16]>) -> [I16Operand<'a>; 4] {
        let Some(out) = out else {
            let parts = self.parts;
            return [0, 1, 2, 3].map(|number| I16Operand::Sum(Sum { scheme, number, parts }));
        };
        let size = self.panels * self.depth * BLOCK;
        let out = &mut out[..4 * size];
        match scheme {
            SchemeSums::Symmetric(rule) => isa.run(FormSums { rule, from: self, out: &mut *out }),
            SchemeSums::Left(rule) => isa.run(FormSums { rule, from: self, out: &mut *out }),
            SchemeSums::Right(rule) => isa.run(FormSums { rule, from: self, out: &mut *out }),
        }
        let (out, stride, count) = (&*out, self.depth * BLOCK, self.panels);
        [0, 1, 2, 3]
            .map(|number| I16Operand::Panels(I16Panels { residues: &out[number * size..][..size], stride, count }))
    }
}

/// Forms the four sums of all panels.
struct FormSums<'a, 'b, R> {
    /// Selects the sums.
    rule: R,
    /// The operand whose parts are summed.
    from: OperandQuarters<'a>,
    /// Where the sums go, one after the other.
    out: &'b mut [i16],
}

impl<R: Rule> I16Task for FormSums<'_, '_, R> {
    #[inline(always)]
    fn run<L: Lanes, const V: usize, const C: usize>(self) {
        let FormSums { rule, from: OperandQuarters { parts, panels, depth }, out } = self;
        let size = depth * BLOCK;
        assert!(depth.is_multiple_of(INTERLEAVED) && out.len() == 4 * panels * size);
        for panel in 0..panels {
            let [a, b, c, d] = parts.map(|part| part.rows(panel, &(0..depth)).as_chunks::<{ 2 * PAIRS }>().0);
            for (group, (((a, b), c), d)) in a.iter().zip(b).zip(c).zip(d).enumerate() {
                for (number, sum) in rule.sums::<L>([a, b, c, d]).iter().enumerate() {
                    let at = (number * panels + panel) * size + group * sum.len();
                    out[at..][..sum.len()].copy_from_slice(sum);
                }
            }
        }
    }
}
