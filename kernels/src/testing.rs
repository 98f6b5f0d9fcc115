//! Code that the tests of several packages share.

/// How many times the seeds and cases of the long tests are to run: the one constant from which they take their counts.
///
/// | how | effort | what runs |
/// |---|---|---|
/// | `make test` | 1 | each option at least once, and each pair of options that meet in the code |
/// | `SUNZI_TEST_EFFORT=2 make test` | 2 | whole tables of cases where `make test` takes pairs |
/// | `make soak` | 20 | the same, with 20 times the seeds |
///
/// The variable `SUNZI_TEST_EFFORT` sets it.
///
/// # Panics
/// Where the variable holds no number from 1 on: a typing error must not pass for a long run.
pub fn effort() -> u64 {
    let Ok(text) = std::env::var("SUNZI_TEST_EFFORT") else { return 1 };
    let effort = text.parse().ok().filter(|&effort| effort > 0);
    effort.unwrap_or_else(|| panic!("SUNZI_TEST_EFFORT is '{text}', and must be a number from 1 on"))
}
