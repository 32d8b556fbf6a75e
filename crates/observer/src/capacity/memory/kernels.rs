//! The four kernels of STREAM, and the values that the arrays must have after them.
//!
//! The kernels are plain loops over slices. The compiler turns the copy into a call of memcpy and the other kernels
//! into vector code, as a C compiler does with -O3. The rates are within 2 % of those of a plain C program
//! (docs/bench.md).

/// STREAM's scalar q.
const SCALAR: f64 = 3.0;

/// One thread's share of the three arrays.
pub(super) struct ArrayShare<'a> {
    pub(super) a: &'a mut [f64],
    pub(super) b: &'a mut [f64],
    pub(super) c: &'a mut [f64],
}

impl ArrayShare<'_> {
    /// Writes the initial values. The thread that will use the arrays must call it, so that their pages are on its NUMA
    /// node. Also doubles `a`, as STREAM does when it tests its clock, because the final values depend on this.
    pub(super) fn fill(&mut self) {
        self.a.fill(1.0);
        self.b.fill(2.0);
        self.c.fill(0.0);
        self.a.iter_mut().for_each(|a| *a *= 2.0);
    }

    /// Runs one kernel: copy (0), scale (1), add (2) or triad (3).
    pub(super) fn run(&mut self, kernel: usize) {
        match kernel {
            0 => copy(self.c, self.a),
            1 => scale(self.b, self.c),
            2 => add(self.c, self.a, self.b),
            _ => triad(self.a, self.b, self.c),
        }
    }

    /// Returns the sum of |value - expected| / |expected| over the elements of each array (a, b, c).
    pub(super) fn errors(&self, expected: [f64; 3]) -> [f64; 3] {
        let error = |array: &[f64], value: f64| array.iter().map(|x| (x - value).abs() / value.abs()).sum();
        [error(self.a, expected[0]), error(self.b, expected[1]), error(self.c, expected[2])]
    }
}

#[inline(never)]
fn copy(c: &mut [f64], a: &[f64]) {
    c.copy_from_slice(a);
}

#[inline(never)]
fn scale(b: &mut [f64], c: &[f64]) {
    for (b, c) in b.iter_mut().zip(c) {
        *b = SCALAR * c;
    }
}

#[inline(never)]
fn add(c: &mut [f64], a: &[f64], b: &[f64]) {
    for ((c, a), b) in c.iter_mut().zip(a).zip(b) {
        *c = a + b;
    }
}

#[inline(never)]
fn triad(a: &mut [f64], b: &[f64], c: &[f64]) {
    for ((a, b), c) in a.iter_mut().zip(b).zip(c) {
        *a = b + SCALAR * c;
    }
}

/// Returns the value that every element of a, b and c has after `repetitions` repetitions.
pub(super) fn expected(repetitions: u32) -> [f64; 3] {
    let (mut a, mut b, mut c) = (2.0, 2.0, 0.0);
    for _ in 0..repetitions {
        c = a;
        b = SCALAR * c;
        c = a + b;
        a = b + SCALAR * c;
    }
    [a, b, c]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(repetitions: u32, spoil: bool) -> [f64; 3] {
        let (mut a, mut b, mut c) = (vec![0.0; 100], vec![0.0; 100], vec![0.0; 100]);
        let mut share = ArrayShare { a: &mut a, b: &mut b, c: &mut c };
        share.fill();
        for _ in 0..repetitions {
            (0..4).for_each(|kernel| share.run(kernel));
        }
        if spoil {
            share.c[50] = 0.0;
        }
        share.errors(expected(repetitions))
    }

    #[test]
    fn the_kernels_leave_the_values_of_the_rules() {
        // One repetition by hand: c = 2, b = 6, c = 8, a = 30.
        assert_eq!(expected(1), [30.0, 6.0, 8.0]);
        for repetitions in [0, 1, 11] {
            if repetitions > 0 {
                assert_eq!(after(repetitions, false), [0.0; 3]);
            }
        }
    }

    #[test]
    fn one_wrong_element_is_seen() {
        assert_eq!(after(2, true), [0.0, 0.0, 1.0]);
    }
}
