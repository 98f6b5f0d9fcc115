//! Polynomial programs in JSON, exactly.
//!
//! Numbers are strings or whole numbers: other numbers without quotation marks are doubles for other readers.
//! Independent of: the solver's reader, which uses another reader of JSON.

use super::choices::{Choices, Prefactor};
use super::json::{Json, is_whole};
use super::number::shown;
use super::polynomial_parts::{Matrix, ProofParts, symmetric};
use super::room::Room;
use rug::Rational;

/// The key of the matrices.
const MATRICES: &str = "PositiveMatrixWithPrefactorArray";

/// The keys that a matrix may have.
const MATRIX_KEYS: [&str; 11] = [
    "prefactor",
    "DampedRational",
    "reducedPrefactor",
    "maxNumPoles",
    "samplePoints",
    "sampleScalings",
    "reducedSampleScalings",
    "bilinearBasis",
    "bilinearBasis_0",
    "bilinearBasis_1",
    "polynomials",
];

type Refusal<T> = Result<T, String>;

/// A polynomial in each entry of a list of lists.
type Rows = Vec<Vec<Vec<Vec<Rational>>>>;

/// Reads the text of a file.
pub fn read(bytes: &[u8], room: &Room) -> Refusal<ProofParts> {
    let json = Json::parse(bytes)?;
    let file = KnownKeys::new(&json, &["objective", "normalization", MATRICES])?;
    let (objective, normalization) = (file.numbers("objective", room)?, file.numbers("normalization", room)?);
    let mut matrices = Vec::new();
    if let Some(found) = file.pairs.iter().find(|(key, _)| key == MATRICES) {
        for (number, one) in found.1.items()?.iter().enumerate() {
            matrices.push(matrix(one, room).map_err(|message| format!("matrix {number}: {message}"))?);
        }
    }
    if objective.is_none() && normalization.is_none() && matrices.is_empty() {
        return Err("there is no objective, no normalization and no matrix".into());
    }
    Ok(ProofParts { objective, normalization, matrices })
}

/// An object whose keys are all known.
struct KnownKeys<'a> {
    pairs: &'a [(String, Json)],
}

impl<'a> KnownKeys<'a> {
    fn new(json: &'a Json, keys: &[&str]) -> Refusal<KnownKeys<'a>> {
        let Json::Object(pairs) = json else { return Err("an object is expected".into()) };
        match pairs.iter().find(|(key, _)| !keys.contains(&key.as_str())) {
            Some((key, _)) => Err(format!("the key '{key}' is unknown")),
            None => Ok(KnownKeys { pairs }),
        }
    }

    /// The value of a key that may be absent, or null.
    fn get(&self, key: &str) -> Option<&'a Json> {
        let found = self.pairs.iter().find(|(name, _)| name == key).map(|(_, value)| value);
        found.filter(|value| !matches!(value, Json::Word(word) if word == "null"))
    }

    fn numbers(&self, key: &str, room: &Room) -> Refusal<Option<Vec<Rational>>> {
        self.get(key).map(|json| list(json, room).map_err(|message| format!("'{key}': {message}"))).transpose()
    }

    /// The number of polynomials in a list, all of which are read.
    fn polynomials(&self, key: &str, room: &Room) -> Refusal<Option<usize>> {
        let Some(json) = self.get(key) else { return Ok(None) };
        Ok(Some(json.each(|one| list(one, room).map(drop))?.len()))
    }

    fn prefactor(&self, key: &str, room: &Room) -> Refusal<Option<Prefactor>> {
        let Some(json) = self.get(key) else { return Ok(None) };
        let object = KnownKeys::new(json, &["constant", "base", "poles"])?;
        let one = |name: &str| {
            let missing = || format!("the {key} has no '{name}'");
            number(object.get(name).ok_or_else(missing)?, room)
        };
        let poles = match object.pairs.iter().find(|(name, _)| name == "poles") {
            Some((_, json)) => list(json, room)?,
            None => Vec::new(),
        };
        Ok(Some(Prefactor { constant: one("constant")?, base: Some(one("base")?), poles }))
    }
}

fn list(json: &Json, room: &Room) -> Refusal<Vec<Rational>> {
    json.each(|json| number(json, room))
}

/// A number that keeps its digits: a text, or a whole number.
pub(super) fn number(json: &Json, room: &Room) -> Refusal<Rational> {
    match json {
        Json::Text(text) => room.number(text),
        Json::Word(word) if is_whole(word) => room.number(word),
        Json::Word(word) => {
            let shown = shown(word);
            Err(format!("'{shown}' must be in quotation marks: without them it is read as a double"))
        }
        _ => Err("a number is expected".into()),
    }
}

fn matrix(json: &Json, room: &Room) -> Refusal<Matrix> {
    let known = KnownKeys::new(json, &MATRIX_KEYS)?;
    let polynomials = known.get("polynomials").ok_or("there are no polynomials")?;
    let entry = |json: &Json| json.each(|json| list(json, room));
    let rows: Rows = polynomials.each(|row| row.each(entry))?;
    let has = |key: &str| known.pairs.iter().any(|(name, _)| name == key);
    if has("prefactor") && has("DampedRational") {
        return Err("'prefactor' and 'DampedRational' name the same function: give one of them".into());
    }
    let own = known.prefactor("prefactor", room)?;
    let prefactor = own.map_or_else(|| known.prefactor("DampedRational", room), |found| Ok(Some(found)))?;
    let most_poles = match known.get("maxNumPoles") {
        None => None,
        Some(Json::Word(word)) if is_whole(word) && word.parse::<i64>().is_ok() => word.parse().ok(),
        Some(_) => return Err("'maxNumPoles' is not a number".into()),
    };
    let both = known.polynomials("bilinearBasis", room)?;
    let (even, odd) = (known.polynomials("bilinearBasis_0", room)?, known.polynomials("bilinearBasis_1", room)?);
    let bases = (both.or(even).or(odd).is_some())
        .then(|| [even, odd].map(|own| own.unwrap_or_else(|| both.unwrap_or_default())));
    let choices = Choices {
        prefactor,
        reduced: known.prefactor("reducedPrefactor", room)?,
        most_poles,
        points: known.numbers("samplePoints", room)?,
        scalings: known.numbers("sampleScalings", room)?,
        reduced_scalings: known.numbers("reducedSampleScalings", room)?,
        bases,
    };
    let (dim, entries) = symmetric(rows)?;
    Ok(Matrix { dim, entries, choices })
}
