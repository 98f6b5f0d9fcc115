//! The form of results: the number type, and the container of the numbers.

/// The number type of results. Where entries differ, the first of this order that occurs among them is taken.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum NumberKind {
    /// `gmpy2.mpfr`.
    Gmpy2,
    /// `mpmath.mpf`.
    Mpmath,
    /// `flint.arb`, with radius 0.
    Flint,
    /// `numpy.longdouble`.
    LongDouble,
    /// `float`.
    Float,
    /// `decimal.Decimal`, with enough digits to be read back.
    Decimal,
    /// Decimal strings with enough digits to be read back.
    Text,
    /// `fractions.Fraction`, exact; for `int` and `Fraction`.
    Fraction,
}

impl NumberKind {
    /// The name that users see.
    pub fn name(self) -> &'static str {
        match self {
            NumberKind::Gmpy2 => "gmpy2",
            NumberKind::Mpmath => "mpmath",
            NumberKind::Flint => "flint",
            NumberKind::LongDouble => "longdouble",
            NumberKind::Float => "float",
            NumberKind::Decimal => "decimal",
            NumberKind::Text => "str",
            NumberKind::Fraction => "fraction",
        }
    }

    /// All of them, in their order.
    pub const ALL: [NumberKind; 8] = {
        use NumberKind::{Decimal, Flint, Float, Fraction, Gmpy2, LongDouble, Mpmath, Text};
        [Gmpy2, Mpmath, Flint, LongDouble, Float, Decimal, Text, Fraction]
    };

    /// The kind of this name.
    pub fn by_name(name: &str) -> Option<NumberKind> {
        NumberKind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// The container of the numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Container {
    /// A list of rows.
    Rows,
    /// A flat list: one column.
    Flat,
    /// A NumPy array of objects, or of long doubles, of two dimensions.
    Objects,
    /// The same of one dimension.
    FlatObjects,
    /// A NumPy array of doubles, of two dimensions.
    Doubles,
    /// A NumPy array of doubles, of one dimension.
    FlatDoubles,
    /// `mpmath.matrix`.
    MpmathMatrix,
    /// `flint.arb_mat`.
    ArbMat,
    /// [`crate::matrix_object::Matrix`].
    Matrix,
}

impl Container {
    /// Whether a single column has no rows of its own.
    pub fn is_flat(self) -> bool {
        matches!(self, Container::Flat | Container::FlatObjects | Container::FlatDoubles)
    }

    /// The number type that it holds in place of `kind`: mpmath and flint cannot hold numbers of each other.
    pub fn kind_of(self, kind: NumberKind) -> NumberKind {
        match self {
            Container::MpmathMatrix => NumberKind::Mpmath,
            Container::ArbMat => NumberKind::Flint,
            _ => kind,
        }
    }

    /// The container for results of `kind` in its place: an array of doubles would drop bits of other numbers.
    pub fn holding(self, kind: NumberKind) -> Container {
        match self {
            Container::Doubles if kind != NumberKind::Float => Container::Objects,
            Container::FlatDoubles if kind != NumberKind::Float => Container::FlatObjects,
            other => other,
        }
    }

    /// The container of the same kind with one dimension, for a column next to matrix results.
    pub fn of_one_dimension(self) -> Container {
        match self {
            Container::Rows => Container::Flat,
            Container::Objects => Container::FlatObjects,
            Container::Doubles => Container::FlatDoubles,
            other => other,
        }
    }

    /// The container of the same kind with two dimensions, for results that are not a column.
    pub fn of_two_dimensions(self) -> Container {
        match self {
            Container::Flat => Container::Rows,
            Container::FlatObjects => Container::Objects,
            Container::FlatDoubles => Container::Doubles,
            other => other,
        }
    }
}
