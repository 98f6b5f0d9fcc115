//! `pmp.json`: an object with `objective`, `normalization` and `PositiveMatrixWithPrefactorArray`.
//!
//! Numbers are strings, as SDPB writes them, or whole numbers: a fraction without quotation marks would be read as a
//! double, and is refused.

use super::{FileParts, Numbers, upper};
use crate::polynomial::{DampedRational, Polynomial, PolynomialMatrix, Sampling};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};
use std::fmt;
use std::marker::PhantomData;
use sunzi::Result;

/// A number as it is written.
struct Text(String);

impl AsRef<str> for Text {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Text, D::Error> {
        struct AsWritten;
        impl Visitor<'_> for AsWritten {
            type Value = Text;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a number in quotation marks or an integer")
            }

            fn visit_str<E>(self, text: &str) -> std::result::Result<Text, E> {
                Ok(Text(text.to_string()))
            }

            fn visit_u64<E>(self, number: u64) -> std::result::Result<Text, E> {
                Ok(Text(number.to_string()))
            }

            fn visit_i64<E>(self, number: i64) -> std::result::Result<Text, E> {
                Ok(Text(number.to_string()))
            }

            fn visit_f64<E: serde::de::Error>(self, _: f64) -> std::result::Result<Text, E> {
                Err(E::custom("a fraction must be in quotation marks: without them it is read as a double"))
            }
        }
        deserializer.deserialize_any(AsWritten)
    }
}

/// A value that must be an object and no list: a list would be accepted by the order of its fields.
struct Keyed<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Keyed<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Keyed<T>, D::Error> {
        struct Keys<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Keys<T> {
            type Value = Keyed<T>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> std::result::Result<Keyed<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Keyed)
            }
        }
        deserializer.deserialize_map(Keys(PhantomData))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    objective: Option<Vec<Text>>,
    normalization: Option<Vec<Text>>,
    #[serde(rename = "PositiveMatrixWithPrefactorArray", default)]
    matrices: Vec<Keyed<JsonBlock>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonPrefactor {
    constant: Text,
    base: Text,
    #[serde(default)]
    poles: Vec<Text>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct JsonBlock {
    polynomials: Vec<Vec<Vec<Vec<Text>>>>,
    #[serde(alias = "DampedRational")]
    prefactor: Option<Keyed<JsonPrefactor>>,
    reduced_prefactor: Option<Keyed<JsonPrefactor>>,
    max_num_poles: Option<i64>,
    sample_points: Option<Vec<Text>>,
    sample_scalings: Option<Vec<Text>>,
    reduced_sample_scalings: Option<Vec<Text>>,
    bilinear_basis: Option<Vec<Vec<Text>>>,
    #[serde(rename = "bilinearBasis_0")]
    bilinear_basis_even: Option<Vec<Vec<Text>>>,
    #[serde(rename = "bilinearBasis_1")]
    bilinear_basis_odd: Option<Vec<Vec<Text>>>,
}

/// Reads the text of a file.
pub(super) fn read(text: &str, numbers: &mut Numbers<'_>) -> Result<FileParts> {
    let Keyed(file) = serde_json::from_str::<Keyed<File>>(text).map_err(|error| numbers.refused(error.to_string()))?;
    let mut vector = |texts: Option<Vec<Text>>, name: &str| {
        texts.map(|texts| numbers.list(&texts, &|| name.to_string())).transpose()
    };
    let objective = vector(file.objective, "objective")?;
    let normalization = vector(file.normalization, "normalization")?;
    let matrices = file.matrices.into_iter().enumerate();
    let matrices = matrices.map(|(number, Keyed(block))| matrix(block, number, numbers)).collect::<Result<Vec<_>>>()?;
    if objective.is_none() && normalization.is_none() && matrices.is_empty() {
        return Err(numbers.refused("there is no objective, no normalization and no matrix"));
    }
    Ok(FileParts { objective, normalization, matrices })
}

fn polynomials(texts: &[Vec<Text>], numbers: &mut Numbers<'_>, place: &str) -> Result<Vec<Polynomial>> {
    let polynomial = |(at, texts): (usize, &Vec<Text>)| numbers.list(texts, &|| format!("{place}, polynomial {at}"));
    texts.iter().enumerate().map(polynomial).collect()
}

fn prefactor(found: JsonPrefactor, numbers: &mut Numbers<'_>, place: &str) -> Result<DampedRational> {
    Ok(DampedRational {
        constant: numbers.number(found.constant.as_ref(), &|| format!("{place}, constant"))?,
        base: numbers.number(found.base.as_ref(), &|| format!("{place}, base"))?,
        poles: numbers.list(&found.poles, &|| format!("{place}, poles"))?,
    })
}

fn matrix(block: JsonBlock, number: usize, numbers: &mut Numbers<'_>) -> Result<PolynomialMatrix> {
    let place = format!("matrix {number}");
    let mut rows = Vec::with_capacity(block.polynomials.len());
    for (r, row) in block.polynomials.iter().enumerate() {
        let entry =
            |(s, entry): (usize, &Vec<Vec<Text>>)| polynomials(entry, numbers, &format!("{place}, entry ({r}, {s})"));
        rows.push(row.iter().enumerate().map(entry).collect::<Result<Vec<_>>>()?);
    }
    let (dim, entries) = upper(rows).map_err(|message| numbers.refused(format!("{place}: {message}")))?;
    let mut list = |texts: Option<Vec<Text>>, name: &str| {
        texts.map(|texts| numbers.list(&texts, &|| format!("{place}, {name}"))).transpose()
    };
    let points = list(block.sample_points, "samplePoints")?;
    let scalings = list(block.sample_scalings, "sampleScalings")?;
    let reduced_scalings = list(block.reduced_sample_scalings, "reducedSampleScalings")?;
    let mut rational = |found: Option<Keyed<JsonPrefactor>>, name: &str| {
        found.map(|Keyed(found)| prefactor(found, numbers, &format!("{place}, {name}"))).transpose()
    };
    let (own, reduced) =
        (rational(block.prefactor, "prefactor")?, rational(block.reduced_prefactor, "reducedPrefactor")?);
    let mut basis = |texts: Option<Vec<Vec<Text>>>, name: &str| {
        texts.map(|texts| polynomials(&texts, numbers, &format!("{place}, {name}"))).transpose()
    };
    let both = basis(block.bilinear_basis, "bilinearBasis")?;
    let even = basis(block.bilinear_basis_even, "bilinearBasis_0")?;
    let odd = basis(block.bilinear_basis_odd, "bilinearBasis_1")?;
    let bases = match (both, even, odd) {
        (None, None, None) => None,
        (both, even, odd) => {
            let both = both.unwrap_or_default();
            Some([even.unwrap_or_else(|| both.clone()), odd.unwrap_or(both)])
        }
    };
    let maximum_poles = block.max_num_poles.and_then(|count| usize::try_from(count).ok());
    let sampling = Sampling {
        prefactor: own,
        reduced_prefactor: reduced,
        maximum_poles,
        points,
        scalings,
        reduced_scalings,
        bases,
    };
    Ok(PolynomialMatrix { dim, entries, sampling })
}
