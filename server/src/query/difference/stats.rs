//! The distributions that a difference is judged by. Pure functions of numbers.
//!
//! Formulas are those of M. Abramowitz and I. Stegun, *Handbook of Mathematical Functions* (A&S), and of the NIST
//! Digital Library of Mathematical Functions (DLMF, <https://dlmf.nist.gov>), where no other source is named.

/// ln Γ(x) for x > 0: Stirling's series (A&S 6.1.41) after shifting the argument up by Γ(x + 1) = x Γ(x).
pub(crate) fn ln_gamma(mut x: f64) -> f64 {
    let mut shift = 0.0;
    while x < 10.0 {
        shift += x.ln();
        x += 1.0;
    }
    let inverse = 1.0 / x;
    let square = inverse * inverse;
    let series = inverse * (1.0 / 12.0 - square * (1.0 / 360.0 - square * (1.0 / 1260.0 - square / 1680.0)));
    (x - 0.5) * x.ln() - x + 0.5 * (2.0 * std::f64::consts::PI).ln() + series - shift
}

/// The regularised incomplete beta function I_x(a, b) for a, b > 0, by its continued fraction (DLMF 8.17.22),
/// evaluated from the front as a ratio of convergents (Lentz).
pub(crate) fn beta_tail(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    // The fraction converges fast on this side of the mean only; the other side is its complement.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - beta_fraction(b, a, 1.0 - x);
    }
    beta_fraction(a, b, x)
}

fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let guard = |v: f64| if v.abs() < TINY { TINY } else { v };
    let front = a * x.ln() + b * (-x).ln_1p() + ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b);
    let mut value = 1.0_f64;
    let mut c = 1.0_f64;
    let mut d = 0.0_f64;
    // Converges in the order of sqrt(max(a, b)) steps; the bound is for hostile arguments.
    for step in 0..20_000_u32 {
        let m = f64::from(step / 2);
        let numerator = if step == 0 {
            1.0
        } else if step % 2 == 0 {
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m))
        } else {
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0))
        };
        d = 1.0 / guard(1.0 + numerator * d);
        c = guard(1.0 + numerator / c);
        let change = c * d;
        value *= change;
        if step > 0 && (change - 1.0).abs() < 1e-12 {
            break;
        }
    }
    // `value` has run through 1 + 1/(1 + …): without its leading 1 it is the fraction itself.
    (front.exp() * (value - 1.0) / a).clamp(0.0, 1.0)
}

/// P(Z > z) of a standard normal variable: A&S 7.1.5 (series) near zero and 7.1.14 (continued fraction) in the tail.
pub(crate) fn normal_tail(z: f64) -> f64 {
    let x = z.abs() / std::f64::consts::SQRT_2;
    let half_erfc = if x < 2.0 {
        let mut term = x;
        let mut sum = x;
        for n in 1..100_u32 {
            let n = f64::from(n);
            term *= -x * x / n;
            sum += term / (2.0 * n + 1.0);
            if term.abs() < 1e-17 {
                break;
            }
        }
        0.5 - sum / std::f64::consts::PI.sqrt()
    } else {
        let mut fraction = 0.0;
        for n in (1..80_u32).rev() {
            fraction = f64::from(n) / 2.0 / (x + fraction);
        }
        (-x * x).exp() / (2.0 * std::f64::consts::PI.sqrt() * (x + fraction))
    };
    if z >= 0.0 { half_erfc } else { 1.0 - half_erfc }
}

/// The z with P(Z > z) = p, for 0 < p <= 1/2: Newton's method on ln P.
pub(crate) fn normal_quantile(p: f64) -> f64 {
    let p = p.clamp(1e-300, 0.5);
    // Off by less than 0.0005 (A&S 26.2.23): a step or two are left.
    let t = (-2.0 * p.ln()).sqrt();
    let mut z =
        t - (2.515_517 + t * (0.802_853 + t * 0.010_328)) / (1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308)));
    for _ in 0..50 {
        let tail = normal_tail(z).max(f64::MIN_POSITIVE);
        let density = (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt();
        let step = (tail / p).ln() * tail / density.max(f64::MIN_POSITIVE);
        z = (z + step).max(0.0);
        if step.abs() < 1e-10 {
            break;
        }
    }
    z
}

/// P(T > t) of Student's t with `df` degrees of freedom, t >= 0 (A&S 26.7.1).
pub(crate) fn student_tail(t: f64, df: f64) -> f64 {
    0.5 * beta_tail(df / 2.0, 0.5, df / (df + t * t))
}

/// The point of Student's t whose tail is that of a normal variable at `z`, to the first terms of its expansion in
/// 1/df (A&S 26.7.5).
pub(crate) fn student_point(z: f64, df: f64) -> f64 {
    let df = df.max(1.0);
    let (z3, z5, z7) = (z.powi(3), z.powi(5), z.powi(7));
    z + (z3 + z) / (4.0 * df)
        + (5.0 * z5 + 16.0 * z3 + 3.0 * z) / (96.0 * df * df)
        + (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * z) / (384.0 * df * df * df)
}

/// Binomial counts of a larger variance are taken for normal ones.
const MOST_EXACT_VARIANCE: f64 = 1e4;

/// Two-sided p of b among a + b events, each of which falls to side B with probability `p`: twice the smaller tail of
/// the exact binomial distribution (A&S 26.5.24), which the beta function continues to counts that are no integers.
pub(crate) fn binomial_p(a: f64, b: f64, p: f64) -> f64 {
    let n = a + b;
    let variance = n * p * (1.0 - p);
    if variance > MOST_EXACT_VARIANCE {
        let z = ((b - n * p).abs() - 0.5).max(0.0) / variance.sqrt();
        return (2.0 * normal_tail(z)).min(1.0);
    }
    // Further than a standard deviation from the mean the other tail is more than half of all.
    let deviation = (b - n * p) / variance.sqrt();
    let upper = if b > 0.0 && deviation > -1.0 {
        beta_tail(b, a + 1.0, p)
    } else {
        1.0
    };
    let lower = if a > 0.0 && deviation < 1.0 {
        beta_tail(a, b + 1.0, 1.0 - p)
    } else {
        1.0
    };
    (2.0 * upper.min(lower)).min(1.0)
}

/// The most standard deviations z that [`binomial_p`] may amount to: it is never less than 2 P(Z > z). A tail of the
/// binomial distribution is no less than the normal one at the root of twice its deviance: A. Zubkov and A. Serov,
/// *Theory Probab. Appl.* 57 (2013).
pub(crate) fn binomial_reach(a: f64, b: f64, p: f64) -> f64 {
    let n = a + b;
    let variance = n * p * (1.0 - p);
    if variance > MOST_EXACT_VARIANCE {
        return (b - n * p).abs() / variance.sqrt();
    }
    let part = |count: f64, of: f64| match count > 0.0 {
        true => count * (count / (n * of)).ln(),
        false => 0.0,
    };
    (2.0 * (part(b, p) + part(a, 1.0 - p))).max(0.0).sqrt()
}

/// The largest of `p_values` that is significant at false discovery rate `q` among `tested`, of which the others are
/// larger; none: `None`. Y. Benjamini and Y. Hochberg, *Controlling the False Discovery Rate*, J. R. Statist. Soc. B
/// 57 (1995).
pub(crate) fn false_discovery_threshold(p_values: &[f64], tested: usize, q: f64) -> Option<f64> {
    let m = tested as f64;
    let mut sorted: Vec<f64> = p_values.iter().copied().filter(|p| *p <= q).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
        .iter()
        .enumerate()
        .rev()
        .find(|(rank, p)| **p <= q * (*rank + 1) as f64 / m)
        .map(|(_, p)| *p)
}

/// Score interval of a Poisson mean from `x` events, at `z` standard errors.
pub(crate) fn poisson_interval(x: f64, z: f64) -> (f64, f64) {
    let middle = x + z * z / 2.0;
    let half = z * (x + z * z / 4.0).sqrt();
    ((middle - half).max(0.0), middle + half)
}

/// Score interval of a share from `x` of `n`: E. B. Wilson, J. Am. Statist. Assoc. 22 (1927).
pub(crate) fn share_interval(x: f64, n: f64, z: f64) -> (f64, f64) {
    let z2 = z * z;
    let middle = (x + z2 / 2.0) / (n + z2);
    let half = z / (n + z2) * (x * (n - x).max(0.0) / n + z2 / 4.0).sqrt();
    ((middle - half).max(0.0), (middle + half).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(value: f64, expected: f64, relative: f64) {
        assert!(
            (value - expected).abs() <= relative * expected.abs(),
            "{value} is not {expected}"
        );
    }

    #[test]
    fn gamma_agrees_with_factorials() {
        let mut factorial = 1.0_f64;
        for n in 1..20_u32 {
            near(ln_gamma(f64::from(n) + 1.0).exp(), factorial * f64::from(n), 1e-9);
            factorial *= f64::from(n);
        }
        near(ln_gamma(0.5), std::f64::consts::PI.sqrt().ln(), 1e-9);
    }

    #[test]
    fn tails_agree_with_printed_tables() {
        near(normal_tail(1.959_963_985), 0.025, 1e-8);
        near(normal_tail(3.0), 1.349_898_03e-3, 1e-8);
        near(normal_tail(6.0), 9.865_876_45e-10, 1e-8);
        near(normal_tail(-1.0), 0.841_344_746, 1e-8);
        near(student_tail(2.042_272_5, 30.0), 0.025, 1e-6);
        near(student_tail(4.587, 10.0), 0.0005, 1e-3);
        let point = |confidence: f64, df| student_point(normal_quantile((1.0 - confidence) / 2.0), df);
        near(point(0.95, 30.0), 2.042_272, 1e-4);
        near(point(0.95, 8.0), 2.306_004, 1e-3);
        near(point(0.8, 8.0), 1.396_815, 1e-3);
        near(point(0.999, 8.0), 5.041_305, 1e-2);
        near(point(0.99, f64::INFINITY), 2.575_829, 1e-6);
        for p in [0.5, 0.3, 0.025, 1e-4, 1e-12, 1e-100] {
            near(normal_tail(normal_quantile(p)), p, 1e-6);
        }
    }

    #[test]
    fn the_binomial_tail_is_the_sum_of_its_terms() {
        for (n, p) in [(10_u32, 0.5_f64), (25, 0.1), (40, 0.9)] {
            for b in 0..=n {
                let term = |k: u32| {
                    let (n, k) = (f64::from(n), f64::from(k));
                    let choose = ln_gamma(n + 1.0) - ln_gamma(k + 1.0) - ln_gamma(n - k + 1.0);
                    (choose + k * p.ln() + (n - k) * (1.0 - p).ln()).exp()
                };
                let upper: f64 = (b..=n).map(term).sum();
                let lower: f64 = (0..=b).map(term).sum();
                let expected = (2.0 * upper.min(lower)).min(1.0);
                near(binomial_p(f64::from(n - b), f64::from(b), p), expected, 1e-7);
            }
        }
    }

    #[test]
    fn no_p_is_smaller_than_the_reach_says() {
        let mut furthest = 0.0_f64;
        for p in [0.5, 0.1, 0.02, 0.7, 0.95, 0.001] {
            for n in [1.0, 2.5, 9.0, 30.3, 200.0, 1_999.7, 30_000.0, 300_000.0] {
                // Whole counts, and others, as dispersion leaves them.
                for part in 0..=4_000 {
                    let b = match part % 2 {
                        0 => n * f64::from(part) / 4_000.0,
                        _ => (n * f64::from(part) / 4_000.0).round().min(n),
                    };
                    let (reach, exact) = (binomial_reach(n - b, b, p), binomial_p(n - b, b, p));
                    let least = 2.0 * normal_tail(reach);
                    assert!(
                        exact >= least * 0.999_999 || least < 1e-290,
                        "{b} of {n} at {p}: {exact} < {least}"
                    );
                    furthest = furthest.max(reach);
                }
            }
        }
        assert!(furthest > 20.0);
    }

    #[test]
    fn exact_and_approximate_binomial_meet() {
        let exact = 2.0 * beta_tail(20_400.0, 19_601.0, 0.5);
        near(
            binomial_p(19_600.0 * 2.0, 20_400.0 * 2.0, 0.5).ln(),
            binomial_p(39_200.0, 40_800.0, 0.5).ln(),
            1e-9,
        );
        near(exact, 2.0 * normal_tail(799.0 / 40_000_f64.sqrt()), 0.02);
    }

    #[test]
    fn the_threshold_steps_up() {
        assert_eq!(false_discovery_threshold(&[0.01, 0.04, 0.03, 0.5], 4, 0.05), Some(0.01));
        assert_eq!(false_discovery_threshold(&[0.01, 0.02, 0.03, 0.5], 4, 0.05), Some(0.03));
        assert_eq!(false_discovery_threshold(&[0.01, 0.02, 0.03], 4, 0.05), Some(0.03));
        assert_eq!(false_discovery_threshold(&[0.01, 0.02, 0.03], 40, 0.05), None);
        assert_eq!(false_discovery_threshold(&[0.2, 0.9], 2, 0.05), None);
        assert_eq!(false_discovery_threshold(&[], 0, 0.05), None);
    }

    #[test]
    fn intervals_hold_what_they_are_made_of() {
        let (low, high) = poisson_interval(0.0, 1.96);
        assert!(low == 0.0 && (high - 3.8416).abs() < 1e-9);
        let (low, high) = share_interval(5.0, 10.0, 1.96);
        near(low, 0.2366, 1e-3);
        near(high, 0.7634, 1e-3);
        assert_eq!(share_interval(0.0, 10.0, 1.96).0, 0.0);
    }
}
