"""Messages for names of NumPy and SciPy that this package lacks, or has under another name."""

_GENERAL = "sunzi has no factorisations of general (unsymmetric) matrices"
_PRODUCT = "sunzi.gemm(a, b), or a @ b of two Matrix"
_POSITIVE = "sunzi.cholesky or sunzi.Cholesky, for symmetric positive definite matrices"

_INSTEAD = {
    "lu": f"{_GENERAL}; for symmetric ones use {_POSITIVE}",
    "lu_factor": f"{_GENERAL}; for symmetric ones use {_POSITIVE}",
    "qr": f"{_GENERAL}; the Cholesky factor of sunzi.syrk(a) is R up to signs, but loses twice as many bits",
    "svd": "sunzi has no singular values; sunzi.extreme_eigenvalue(sunzi.syrk(a)) encloses the square of one",
    "eig": "sunzi has only extreme eigenvalues: sunzi.extreme_eigenvalue and sunzi.pencil_eigenvalue",
    "lstsq": "sunzi has no least squares by QR; sunzi.solve(sunzi.syrk(a), sunzi.gemm(a, b, transpose_a=True)) solves "
    "the normal equations, which lose twice as many bits",
    "pinv": "sunzi has no pseudo-inverses",
    "expm": "sunzi has no functions of matrices",
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
    """The message for the missing attribute `name` of `sunzi`."""
    if name == "linalg":
        return "module 'sunzi' has no attribute 'linalg': its functions are attributes of sunzi"
    instead = _INSTEAD.get(_SAME.get(name, name))
    text = f"module 'sunzi' has no attribute '{name}'"
    return f"{text}: {instead}" if instead else text
