# Copyright the Sunzi contributors.
#
# SPDX-License-Identifier: (Apache-2.0 OR MIT)
"""The program sunzi for Spack, built from the sources that this repository of packages lies in."""

from pathlib import Path

from spack_repo.builtin.build_systems.cargo import CargoPackage

from spack.package import *


class Sunzi(CargoPackage):
    """Dense linear algebra on big floats of 2 to 5000 bits: products, Cholesky factors, certified solutions of symmetric
    positive definite systems, semidefinite programs; over MPI ranks as well."""

    url = "file://" + str(Path(__file__).resolve().parents[4])
    git = url

    license("MIT OR Apache-2.0", checked_by="sunzi")

    version("0.1.0", branch="main")

    variant("mpi", default=True, description="Ranks that are processes under MPI")
    variant("blas", default=False, description="A kernel on OpenBLAS")
    variant("cuda", default=False, description="NVIDIA GPUs, found at run time")

    depends_on("c", type="build")
    depends_on("rust@1.89:", type="build")
    depends_on("gmake", type="build")
    depends_on("m4", type="build")
    depends_on("mpi", when="+mpi")
    depends_on("llvm+clang", type="build", when="+mpi")
    depends_on("openblas", when="+blas")

    build_directory = "cli"

    @property
    def build_args(self):
        chosen = [name for name in ("mpi", "blas", "cuda") if f"+{name}" in self.spec]
        return ["--features", ",".join(chosen)] if chosen else []

    def setup_build_environment(self, env):
        if "+mpi" in self.spec:
            env.set("MPICC", self.spec["mpi"].mpicc)
            env.set("LIBCLANG_PATH", self.spec["llvm"].prefix.lib)
        if "+blas" in self.spec:
            env.set("OPENBLAS_LIB_DIR", self.spec["openblas"].prefix.lib)
