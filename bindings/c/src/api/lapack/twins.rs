//! `twins!`: the argument list of a routine, written once for all of its entry points.

/// Makes the struct of a routine's arguments with their names, and the two entry points of each routine that has these
/// arguments: the first on `mpfr_t`, the second on `mpf_t`. `info(Rsyrk::run)` means that they return the answer of the
/// function `info` about `Rsyrk::run`.
///
/// The safety section of the entry points is that of the header, and comes from here. `tests/header.rs` reads these
/// lists and writes the same functions for the header: a change of their form belongs there as well. Lists stand at the
/// margin, so that comments have the lines that they have in the header.
macro_rules! twins {
    (
        $(#[$about:meta])*
        struct $arguments:ident $list:tt
        $($(#[$doc:meta])* fn $mpfr:ident, $mpf:ident => $info:ident($run:path);)+
    ) => {
        twins! { @arguments [$(#[$about])*] $arguments $list }
        $(
            twins! { @entry SUNZI_MPFR [$(#[$doc])*] $mpfr $info $run, $arguments $list }
            twins! {
                @entry SUNZI_MPF
                [#[doc = concat!("Same as `", stringify!($mpfr), "`, for scalars and arrays of `mpf_t`.")]]
                $mpf $info $run, $arguments $list
            }
        )+
    };
    (@arguments [$(#[$about:meta])*] $arguments:ident { $($name:ident: $kind:ty,)+ }) => {
        $(#[$about])*
        struct $arguments {
            $($name: $kind,)+
        }

        impl $arguments {
            /// Their names in the header, in their order.
            const NAMES: &'static [&'static str] = &[$(stringify!($name)),+];
        }
    };
    (
        @entry $format:ident [$(#[$doc:meta])*]
        $entry:ident $info:ident $run:path, $arguments:ident { $($name:ident: $kind:ty,)+ }
    ) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// The header's rules.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $entry(ctx: *const $crate::context::sunzi_context, $($name: $kind),+) -> i64 {
            let (format, arguments) = ($crate::types::$format, $arguments { $($name),+ });
            // SAFETY: by contract, for all below.
            unsafe { $info(ctx, format, $arguments::NAMES, |call, entries| $run(&arguments, call, entries)) }
        }
    };
}

pub(crate) use twins;
