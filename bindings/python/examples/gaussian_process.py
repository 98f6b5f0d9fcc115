"""Log-likelihood of a Gaussian process at 300 digits.

The squared-exponential kernel on close points has a condition number far beyond doubles: with a noise of 1e-100 the
Cholesky factorisation needs about 200 digits to succeed. Checked against mpmath's own factorisation.
"""

import mpmath
from mpmath import mp, mpf

import sunzi

POINTS = 40
DIGITS = 300


def kernel(points: list[mpf], length: mpf, noise: mpf) -> mpmath.matrix:
    """`exp(-|x - y|² / (2 length²))`, with the noise's variance on the diagonal."""
    covariance = mpmath.matrix(len(points), len(points))
    for i, x in enumerate(points):
        for j, y in enumerate(points):
            covariance[i, j] = mpmath.exp(-((x - y) ** 2) / (2 * length**2)) + (noise if i == j else 0)
    return covariance


def log_likelihood(covariance: mpmath.matrix, y: mpmath.matrix) -> mpf:
    """`-(yᵀ K⁻¹ y + log det K + n log 2π) / 2`: one factorisation gives the solution and the determinant."""
    factor = sunzi.Cholesky(covariance)
    explained = (y.T * factor.solve(y))[0]
    return -(explained + factor.log_det() + len(y) * mpmath.log(2 * mp.pi)) / 2


def main() -> None:
    mp.dps = DIGITS
    points = [mpf(i) / POINTS for i in range(POINTS)]
    y = mpmath.matrix([mpmath.sin(6 * x) for x in points])
    covariance = kernel(points, mpf(1) / 2, mpf(10) ** -100)
    value = log_likelihood(covariance, y)

    lower = mpmath.cholesky(covariance)
    explained = mpmath.norm(mpmath.lu_solve(lower, y)) ** 2
    log_det = 2 * sum(mpmath.log(lower[i, i]) for i in range(POINTS))
    expected = -(explained + log_det + POINTS * mpmath.log(2 * mp.pi)) / 2

    print("log-likelihood:", mpmath.nstr(value, 50))
    digits = int(-mpmath.log10(abs(value / expected - 1) + mpf(10) ** -DIGITS))
    print(f"{digits} digits agree with mpmath")
    assert digits > 150, digits


if __name__ == "__main__":
    main()
