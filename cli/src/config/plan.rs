//! What `sunzi plan` is to plan: operation, size, cluster, and which options belong to which operation.

use super::{Command, factor, optional, precision, size};
use crate::args::RawPlan;
use sunzi::error::{Error, Result};
use sunzi::ops::distributed::ClusterShape;
use sunzi_lab::engine::{Engine, check_reach};

/// Names of the operations of `plan`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// One triangle of a symmetric product.
    Syrk,
    /// A general product.
    Gemm,
}

/// A product to plan.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Which product.
    pub operation: Operation,
    /// Rows contracted.
    pub contracted: usize,
    /// Rows of the result.
    pub rows: usize,
    /// Columns of the result.
    pub cols: usize,
    /// Precision.
    pub precision_bits: u32,
    /// With the redundant prime.
    pub self_check: bool,
    /// The engine.
    pub engine: Engine,
}

/// A factorisation to plan.
#[derive(Clone, Debug)]
pub struct PlanCholesky {
    /// Rows of the matrix.
    pub order: usize,
    /// Precision.
    pub precision_bits: u32,
    /// Rows of a tile.
    pub tile_rows: Option<usize>,
    /// The engine.
    pub engine: Engine,
}

/// A SYRK to plan on a cluster.
#[derive(Clone, Debug)]
pub struct PlanCluster {
    /// Nodes, ranks and threads.
    pub cluster: ClusterShape,
    /// Rows contracted, on all ranks.
    pub rows: usize,
    /// Columns.
    pub cols: usize,
    /// Precision.
    pub precision_bits: u32,
    /// With the redundant prime.
    pub self_check: bool,
    /// The engine; the memory limit is that of a node.
    pub engine: Engine,
}

impl RawPlan {
    pub(super) fn resolve(self) -> Result<Command> {
        let for_cluster = self.cluster_option();
        match (self.operation.as_str(), for_cluster) {
            ("syrk", Some(_)) => Ok(Command::PlanCluster(self.resolve_cluster()?)),
            ("syrk" | "gemm", None) => Ok(Command::Plan(self.resolve_product()?)),
            ("cholesky", None) => Ok(Command::PlanCholesky(self.resolve_cholesky()?)),
            ("gemm" | "cholesky", Some(option)) => {
                refuse(format!("{option} belongs to syrk: {} is not planned for clusters", self.operation))
            }
            (name, _) => refuse(format!("unknown operation '{name}': choose one of syrk, gemm, cholesky")),
        }
    }

    /// The option given that asks for a cluster.
    fn cluster_option(&self) -> Option<&'static str> {
        let given = [("--nodes", self.nodes.is_some()), ("--ranks-per-node", self.ranks_per_node.is_some())];
        given.into_iter().find(|(_, given)| *given).map(|(name, _)| name)
    }

    /// Columns of a product, and options that do not belong to one.
    fn product_columns(&self) -> Result<usize> {
        if self.tile.is_some() {
            return refuse("--tile belongs to cholesky".into());
        }
        match &self.cols {
            Some(text) => size("--cols", text),
            None => refuse("--cols: how many columns does the product have?".into()),
        }
    }

    /// Rows of the result, which is `cols` columns wide.
    fn product_rows(&self, cols: usize) -> Result<usize> {
        let rows = self.result_rows.as_deref().map_or(Ok(cols), |text| size("--result-rows", text))?;
        if self.operation == "syrk" && rows != cols {
            return refuse("--result-rows belongs to gemm: a syrk result is square".into());
        }
        Ok(rows)
    }

    fn resolve_product(self) -> Result<Plan> {
        let cols = self.product_columns()?;
        let rows = self.product_rows(cols)?;
        let engine = self.engine.resolve()?;
        let precision_bits = precision("--precision", &self.precision)?;
        check_reach(precision_bits, engine.kernel)?;
        Ok(Plan {
            operation: if self.operation == "syrk" { Operation::Syrk } else { Operation::Gemm },
            contracted: size("--rows", &self.rows)?,
            rows,
            cols,
            precision_bits,
            self_check: self.self_check,
            engine,
        })
    }

    fn resolve_cluster(self) -> Result<PlanCluster> {
        let cols = self.product_columns()?;
        self.product_rows(cols)?;
        let engine = self.engine.resolve()?;
        engine.refuse_devices("a product on a cluster")?;
        let precision_bits = precision("--precision", &self.precision)?;
        check_reach(precision_bits, engine.kernel)?;
        let count = |what: &str, text: Option<String>| match optional(text, |text| size(what, text))? {
            Some(0) => refuse(format!("{what}: a cluster needs at least 1")),
            count => Ok(count.unwrap_or(1)),
        };
        let cluster = ClusterShape {
            nodes: count("--nodes", self.nodes)?,
            ranks_per_node: count("--ranks-per-node", self.ranks_per_node)?,
            threads: engine.threads.unwrap_or(1),
        };
        let rows = size("--rows", &self.rows)?;
        Ok(PlanCluster { cluster, rows, cols, precision_bits, self_check: self.self_check, engine })
    }

    fn resolve_cholesky(self) -> Result<PlanCholesky> {
        let given = [
            ("--cols", self.cols.is_some()),
            ("--result-rows", self.result_rows.is_some()),
            ("--self-check", self.self_check),
        ];
        if let Some((name, _)) = given.into_iter().find(|(_, given)| *given) {
            return refuse(format!("{name} belongs to products"));
        }
        Ok(PlanCholesky {
            order: size("--rows", &self.rows)?,
            precision_bits: precision("--precision", &self.precision)?,
            tile_rows: optional(self.tile, factor::tile_rows)?,
            engine: self.engine.resolve()?,
        })
    }
}

fn refuse<T>(what: String) -> Result<T> {
    Err(Error::InvalidArgument(what))
}
