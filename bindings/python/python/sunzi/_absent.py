"""Names of NumPy and SciPy that this package lacks, or has under another name."""

_GENERAL = "factorisations of general (unsymmetric) matrices are not there"
_PRODUCT = "sunzi.gemm(a, b), or a @ b of two Matrix"
_POSITIVE = "sunzi.cholesky or sunzi.Cholesky, for symmetric positive definite matrices"

_INSTEAD = {
    "lu": f"{_GENERAL}; for symmetric ones there is {_POSITIVE}",
    "lu_factor": f"{_GENERAL}; for symmetric ones there is {_POSITIVE}",
    "qr": f"{_GENERAL}; the Cholesky factor of sunzi.syrk(a) is its R, up to signs, at twice the lost bits",
    "svd": "singular values are not there; sunzi.extreme_eigenvalue(sunzi.syrk(a)) holds the square of an extreme one",
    "eig": "eigenvalues are not there, but for the extreme ones: sunzi.extreme_eigenvalue, sunzi.pencil_eigenvalue",
    "lstsq": "least squares by QR are not there; sunzi.solve(sunzi.syrk(a), sunzi.gemm(a, b, transpose_a=True)) is "
    "their solution by the normal equations, at twice the lost bits",
    "pinv": "pseudo-inverses are not there",
    "expm": "functions of matrices are not there",
    "inv": "sunzi.inverse(a), for symmetric positive definite matrices",
    "cond": "sunzi.condition(a), an estimate for symmetric positive definite matrices",
    "slogdet": "sunzi.log_det(a), or sunzi.Ldlt(a).det() where the sign is not known",
    "ldl": "sunzi.ldlt(a), without pivoting",
    "matmul": _PRODUCT,
    "array": "sunzi.Matrix(data)",
    "eye": "sunzi.Matrix.identity(n, precision=bits)",
    "zeros": "sunzi.Matrix.zeros(rows, cols, precision=bits)",
    "load": "sunzi.Matrix.load(path)",
    "loadtxt": "sunzi.Matrix.load(path)",
    "save": "matrix.save(path) of a sunzi.Matrix",
    "savetxt": "matrix.save(path) of a sunzi.Matrix",
    "cho_factor": "sunzi.Cholesky(a)",
    "cho_solve": "sunzi.Cholesky(a).solve(b)",
    "solve_triangular": "sunzi.trsm(t, b)",
}
_SAME = {
    "eigh": "eig",
    "eigvals": "eig",
    "eigvalsh": "eig",
    "svdvals": "svd",
    "identity": "eye",
}


def absent(name: str) -> str:
    """What to say of `sunzi.name`."""
    if name == "linalg":
        return "module 'sunzi' has no attribute 'linalg': its functions are in sunzi itself"
    instead = _INSTEAD.get(_SAME.get(name, name))
    text = f"module 'sunzi' has no attribute '{name}'"
    return f"{text}: {instead}" if instead else text
