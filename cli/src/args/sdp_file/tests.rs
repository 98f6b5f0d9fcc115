//! Files of parameters: those that SDPA and SDPA-GMP ship, lines as SDPB takes them, and refusals.

use super::*;
use crate::args::sdp::{ParameterChoices, Places};
use std::path::PathBuf;
use sunzi::rug::Float;
use sunzi_sdp::{Form, SolverOptions};

/// SDPA-GMP's own file.
const GMP: &str = "\
200\tunsigned int maxIteration;
1.0E-30\tdouble 0.0 < epsilonStar;
1.0E4   double 0.0 < lambdaStar;
2.0   \tdouble 1.0 < omegaStar;
-1.0E5  double lowerBound;
1.0E5   double upperBound;
0.1     double 0.0 <= betaStar <  1.0;
0.3     double 0.0 <= betaBar  <  1.0, betaStar <= betaBar;
0.9     double 0.0 < gammaStar  <  1.0;
1.0E-30\tdouble 0.0 < epsilonDash;
200     precision
%+50.40Fe     char*  xPrint   (default %+8.3e,   NOPRINT skips printout)
%+50.40Fe     char*  XPrint   (default %+8.3e,   NOPRINT skips printout)
%+50.40Fe     char*  YPrint   (default %+8.3e,   NOPRINT skips printout)
%+50.40Fe     char*  infPrint (default %+10.16e, NOPRINT skips printout)
";

/// SDPA's own file, in double precision.
const DOUBLE: &str = "\
100\tunsigned int maxIteration;
1.0E-7\tdouble 0.0 < epsilonStar;
1.0E2   double 0.0 < lambdaStar;
2.0   \tdouble 1.0 < omegaStar;
-1.0E5  double lowerBound;
1.0E5   double upperBound;
0.1     double 0.0 <= betaStar <  1.0;
0.2     double 0.0 <= betaBar  <  1.0, betaStar <= betaBar;
0.9     double 0.0 < gammaStar  <  1.0;
1.0E-7\tdouble 0.0 < epsilonDash;
%+8.3e     char*  xPrint   (default %+8.3e,   NOPRINT skips printout)
NOPRINT    char*  XPrint   (default %+8.3e,   NOPRINT skips printout)
";

fn read(text: &str) -> Result<(Given, Option<String>)> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("param");
    std::fs::write(&path, text).unwrap();
    read_parameters(&path)
}

fn options(text: &str) -> (ParameterChoices, SolverOptions) {
    let choices = ParameterChoices::default().or(read(text).unwrap().0.choices);
    (choices.clone(), choices.options(Form::Sdpa))
}

fn is(value: &Float, text: &str) -> bool {
    *value == Float::with_val(256, Float::parse(text).unwrap())
}

/// SDPB's thresholds and scales are two each, with a default of their own; SDPA's one is for both.
#[test]
fn one_threshold_of_sdpb_leaves_the_other() {
    let (_, found) = options("primalErrorThreshold = 1e-7\ninitialMatrixScalePrimal = 1e3\n");
    assert!(is(&found.primal_error_threshold, "1e-7") && is(&found.dual_error_threshold, "1e-30"));
    assert!(found.initial_matrix_scale_primal == 1000 && found.initial_matrix_scale_dual == 10_000);
}

#[test]
fn files_of_sdpa_are_read_as_they_are_shipped() {
    let (choices, found) = options(GMP);
    assert_eq!((choices.bits(), found.max_iterations), (200, 200));
    assert!(is(&found.duality_gap_threshold, "1e-30") && is(&found.dual_error_threshold, "1e-30"));
    assert!(is(&found.primal_error_threshold, "1e-30") && is(&found.step_length_reduction, "0.9"));
    assert!(is(&found.feasible_centering_parameter, "0.1") && is(&found.infeasible_centering_parameter, "0.3"));
    assert!(found.initial_matrix_scale_primal == 10_000 && found.initial_matrix_scale_dual == 10_000);
    assert_eq!(
        (found.lower_bound, found.upper_bound),
        (Some(Float::with_val(256, -1e5)), Some(Float::with_val(256, 1e5)))
    );
    let remark = read(GMP).unwrap().1.unwrap();
    assert!(remark.contains("param: omegaStar has no counterpart"), "{remark}");
    let (choices, found) = options(DOUBLE);
    assert_eq!((choices.bits(), found.max_iterations), (400, 100));
    assert!(is(&found.dual_error_threshold, "1e-7") && is(&found.infeasible_centering_parameter, "0.2"));
    // Positions count, not words: another language, another order of names, or none.
    let bare = DOUBLE.lines().map(|line| line.split_whitespace().next().unwrap()).collect::<Vec<_>>().join("\n");
    assert_eq!(options(&bare).1, found);
    assert_eq!(options(&DOUBLE.replace("epsilonStar", "epsilonDash").replace("double", "réel")).1, found);
    assert_eq!(options(&DOUBLE.replace("100\t", "100;")).1, found);
}

#[test]
fn short_files_of_sdpa_name_their_parameters() {
    let (choices, found) =
        options("1.0E-41 double epsilonDash;\n200 unsigned int maxIteration;\n256 precision\n%+8.3e char* xPrint\n");
    assert_eq!((choices.bits(), found.max_iterations), (256, 200));
    assert!(is(&found.dual_error_threshold, "1e-41") && is(&found.duality_gap_threshold, "1e-30"));
    let refused = |text: &str| read(text).map(drop).unwrap_err().to_string();
    assert!(refused("200 maxIteration\n1e-30 unknownStar;\n").contains("line 2: '1e-30 unknownStar;'"));
    assert!(refused("200\n").contains("line 1"));
    assert!(refused(&DOUBLE.replace("%+8.3e     char*  xP", "1 2 3\n4 more ")).contains("line 12"));
    assert!(refused(&GMP.replace("200\tunsigned", "many\tunsigned")).contains("line 1"));
    assert!(refused(&GMP.replace("1.0E4 ", "1.0X4 ")).contains("1.0X4"));
    assert!(refused("200 maxIteration\n300 maxIteration\n").contains("maxIterations"));
}

#[test]
fn lines_of_sdpb_are_read_and_the_command_line_counts_first() {
    let file = read(
        "# a comment\nprecision = 512\nmaxIterations=7\ndetectDualFeasibleJump=true\nfindDualFeasible=false\n\
         sdpDir = some where/sdp\noutDir=o\ncheckpointDir=\ninitialCheckpointDir=first\nverbosity=1\n",
    );
    let (file, remark) = file.unwrap();
    assert!(remark.is_none());
    let path = |text: &str| Some(PathBuf::from(text));
    let Places { input, out_dir, checkpoint_dir, initial_checkpoint_dir } = file.places.clone();
    assert_eq!((input, out_dir), (path("some where/sdp"), path("o")));
    assert_eq!((checkpoint_dir, initial_checkpoint_dir), (path(""), path("first")));
    let line = Places { out_dir: path("mine"), ..Places::default() }.or(file.places);
    assert_eq!((line.out_dir, line.input), (path("mine"), path("some where/sdp")));
    let choices = file.choices;
    assert_eq!((choices.precision, choices.options(Form::Sdpb).max_iterations), (Some(512), 7));
    let (line, _) = read("precision=300\n").unwrap();
    assert_eq!(line.choices.or(choices).bits(), 300);
}

#[test]
fn switches_are_read_as_sdpb_reads_them() {
    let switched = |value: &str| {
        let (_, found) = options(&format!("findDualFeasible={value}\nmaxIterations=1\n"));
        assert_eq!(found.max_iterations, 1);
        found.find_dual_feasible
    };
    assert!(["true", "1", "yes", "on", "", "True"].into_iter().all(switched));
    assert!(!["false", "0", "no", "off", "OFF"].into_iter().any(switched));
    let refused = |text: &str| read(text).map(drop).unwrap_err().to_string();
    assert!(refused("findDualFeasible=2\n").contains("'2' is neither true nor false"));
}

#[test]
fn bad_parameters_are_named() {
    let refused = |text: &str| read(text).map(drop).unwrap_err().to_string();
    assert!(refused("precison=512\n").contains("--precison"));
    assert!(refused("precision\n").contains("line 1"));
    assert!(refused("maxIterations=many\n").contains("many"));
    assert!(refused("=3\n").contains("line 1"));
    assert!(read("").is_ok());
}

/// A program given as a file of parameters is one line of any length: the message has its first characters.
#[test]
fn messages_have_the_first_characters_of_a_line() {
    let long = "x".repeat(1 << 18);
    for text in [long.clone(), format!("{long}=1"), format!("noFinalCheckpoint={long}"), format!("1 {long}")] {
        let said = read(&text).unwrap_err().to_string();
        assert!(said.contains("xxxxxxxx...") && said.len() < 500, "{said}");
    }
}
