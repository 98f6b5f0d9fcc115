//! Whether this process was started by an MPI launcher, found from its environment without calling MPI.
//!
//! A build without MPI uses it too: started as one of several ranks, it would repeat the whole work once per rank.

/// Number of ranks that the launcher started, or `None` where this process was started without one.
///
/// Open MPI, MPICH and its relatives, `srun`, Flux and PMIx launchers are known. If a launcher states a rank but no
/// number of ranks, the result is the smallest number that is possible: this rank's number plus 1.
pub fn launched() -> Option<usize> {
    launched_in(|name| std::env::var(name).ok())
}

/// Variables that hold the number of ranks. `SLURM_STEP_NUM_TASKS` is set by `srun`, not for a batch script itself.
const SIZES: [&str; 7] = [
    "OMPI_COMM_WORLD_SIZE",
    "PMI_SIZE",
    "MV2_COMM_WORLD_SIZE",
    "FLUX_JOB_SIZE",
    "JSM_NAMESPACE_SIZE",
    "MPI_LOCALNRANKS",
    "SLURM_STEP_NUM_TASKS",
];

fn launched_in(variable: impl Fn(&str) -> Option<String>) -> Option<usize> {
    let number = |name: &str| variable(name)?.trim().parse::<usize>().ok();
    let size = SIZES.into_iter().find_map(|name| number(name).filter(|&size| size > 0));
    size.or_else(|| number("PMIX_RANK").map(|rank| rank + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(variables: &[(&str, &str)]) -> Option<usize> {
        launched_in(|name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string()))
    }

    #[test]
    fn each_launcher_is_known_by_its_variables() {
        assert_eq!(with(&[]), None);
        assert_eq!(with(&[("SLURM_NTASKS", "8"), ("SLURM_PROCID", "0")]), None, "a batch script");
        assert_eq!(with(&[("OMPI_COMM_WORLD_SIZE", "4"), ("PMIX_RANK", "1"), ("SLURM_STEP_NUM_TASKS", "1")]), Some(4));
        assert_eq!(with(&[("PMI_SIZE", "6"), ("MPI_LOCALNRANKS", "3")]), Some(6));
        assert_eq!(with(&[("MPI_LOCALNRANKS", "3")]), Some(3));
        assert_eq!(with(&[("SLURM_STEP_NUM_TASKS", "12"), ("PMIX_RANK", "5")]), Some(12));
        assert_eq!(with(&[("PMIX_RANK", "5")]), Some(6));
        assert_eq!(with(&[("PMI_SIZE", "many"), ("MPI_LOCALNRANKS", "0")]), None);
    }
}
