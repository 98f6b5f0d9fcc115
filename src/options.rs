//! The one form of all options: a struct with defaults, fields that can be read and set, and setters by value.
#![forbid(unsafe_code)]

/// One setter for each field named, and where it begins with `new` that for the defaults; a field that may be absent
/// takes its value with or without `Some`.
macro_rules! setters {
    (new $name:ident $(<$life:lifetime>)? { $($fields:tt)* }) => {
        impl $(<$life>)? $name $(<$life>)? {
            /// The defaults.
            pub fn new() -> Self {
                Self::default()
            }
        }

        setters! { $name $(<$life>)? { $($fields)* } }
    };
    ($name:ident $(<$life:lifetime>)? { $($field:ident: $type:ty),* $(,)? }) => {
        impl $(<$life>)? $name $(<$life>)? {
            $(
                /// Sets the field of this name.
                #[must_use]
                pub fn $field(mut self, $field: $type) -> Self {
                    self.$field = $field.into();
                    self
                }
            )*
        }
    };
}

pub(crate) use setters;
