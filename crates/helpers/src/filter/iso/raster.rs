//! Draws pictures of triangles with a depth buffer. The order of the triangles does not matter, because each pixel
//! keeps the least depth, and of equal depths the darkest shade.

use super::cubes::Triangle;

/// The value of a pixel without a triangle.
pub(super) const EMPTY: u32 = u32::MAX;

/// Upper bound of depths.
const DEPTHS: f32 = (1 << 24) as f32;

/// The number of subdivisions of a pixel, in each direction, at which corners of triangles are placed.
const PARTS: f32 = 256.0;

/// The direction from which a unit of work shows the field, without perspective.
#[derive(Debug, Clone, Copy)]
pub(super) struct Camera {
    /// The width of the square picture, in pixels.
    edge: usize,
    size: f32,
    cosine: f32,
    sine: f32,
}

impl Camera {
    /// Creates the view for a unit of work. The view rotates from one unit to the next, and by 90 degrees in 8 units.
    /// Cosine and sine are rational functions of the step, so they need no library.
    pub(super) fn new(unit: u32, size: usize, edge: usize) -> Self {
        let t = (unit % 8) as f32 / 8.0;
        let (c, s) = ((1.0 - t * t) / (1.0 + t * t), 2.0 * t / (1.0 + t * t));
        let (cosine, sine) = match unit / 8 % 4 {
            0 => (c, s),
            1 => (-s, c),
            2 => (-c, -s),
            _ => (s, -c),
        };
        Camera { edge, size: size as f32, cosine, sine }
    }

    /// Returns a corner's coordinates as seen by the viewer: to the right, down, and away from the viewer. They count
    /// from the field's middle, in units of about the field's diagonal.
    fn seen(&self, corner: [f32; 3]) -> [f32; 3] {
        let [x, y, z] = corner.map(|at| (at - (self.size - 1.0) / 2.0) / (self.size * 1.75));
        let (right, away) = (self.cosine * x - self.sine * y, self.sine * x + self.cosine * y);
        // From slightly above, with 0.6 and 0.8 as sine and cosine: 3, 4 and 5 are a right triangle.
        [right, -(0.8 * z + 0.6 * away), 0.8 * away - 0.6 * z]
    }

    /// Draws a triangle into `pixels`: edge x edge values, each with a depth (24 bits) and a shade (8 bits).
    pub(super) fn draw(&self, pixels: &mut [u32], triangle: &Triangle) {
        let seen = triangle.map(|corner| self.seen(corner));
        let edge = self.edge as f32;
        let place =
            |part: f32| ((part + 0.5) * edge * PARTS).clamp(-PARTS * edge, 2.0 * PARTS * edge).round() as i64;
        let [mut a, b, mut c] = seen.map(|[right, down, away]| Corner {
            x: place(right),
            y: place(down),
            depth: f64::from((away + 0.5) * DEPTHS),
        });
        let mut area = doubled(a, b, c);
        if area < 0 {
            std::mem::swap(&mut a, &mut c);
            area = -area;
        }
        if area > 0 {
            fill(pixels, self.edge, [a, b, c], area, shade(&seen));
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Corner {
    x: i64,
    y: i64,
    depth: f64,
}

/// Returns twice the signed area of the triangle a, b, c.
fn doubled(a: Corner, b: Corner, c: Corner) -> i64 {
    (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x)
}

fn fill(pixels: &mut [u32], edge: usize, corners: [Corner; 3], area: i64, shade: u32) {
    let part = PARTS as i64;
    let range = |of: fn(&Corner) -> i64| {
        let (least, most) =
            corners.iter().map(of).fold((i64::MAX, i64::MIN), |(l, m), v| (l.min(v), m.max(v)));
        least.div_euclid(part).clamp(0, edge as i64)..(most.div_euclid(part) + 1).clamp(0, edge as i64)
    };
    let [a, b, c] = corners;
    for y in range(|corner| corner.y) {
        for x in range(|corner| corner.x) {
            let middle = Corner { x: x * part + part / 2, y: y * part + part / 2, depth: 0.0 };
            let weights = [doubled(b, c, middle), doubled(c, a, middle), doubled(a, b, middle)];
            if weights.iter().all(|weight| *weight >= 0) {
                let [p, q, r] = weights.map(|weight| weight as f64);
                let depth = (p * a.depth + q * b.depth + r * c.depth) / area as f64;
                let depth = depth.clamp(0.0, f64::from(DEPTHS) - 2.0) as u32;
                let pixel = &mut pixels[y as usize * edge + x as usize];
                *pixel = (*pixel).min(depth << 8 | shade);
            }
        }
    }
}

/// Returns the shade of a triangle, from 55 to 255. It is brighter the more the triangle faces the viewer.
fn shade(seen: &Triangle) -> u32 {
    let [a, b, c] = seen;
    let (u, v) = ([0, 1, 2].map(|n| b[n] - a[n]), [0, 1, 2].map(|n| c[n] - a[n]));
    let normal = [u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]];
    let length = (normal[0] * normal[0] + normal[1] * normal[1] + normal[2] * normal[2]).sqrt();
    let facing = if length > 0.0 { normal[2].abs() / length } else { 0.0 };
    55 + (facing * 200.0) as u32
}

/// Merges the pixels `others`, which may be fewer, into `pixels`.
pub(super) fn merge(pixels: &mut [u32], others: impl Iterator<Item = u32>) {
    pixels.iter_mut().zip(others).for_each(|(pixel, other)| *pixel = (*pixel).min(other));
}

/// Returns the shade of each pixel; 0 (black) where there is no triangle.
pub(super) fn shades(pixels: &[u32]) -> Vec<u8> {
    pixels.iter().map(|pixel| if *pixel == EMPTY { 0 } else { *pixel as u8 }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_triangles_does_not_matter_and_wild_ones_do_no_harm() {
        let corner = |n: u32| [n % 17, n * 7 % 19, n * 5 % 13].map(|at| at as f32);
        let mut triangles: Vec<Triangle> =
            (0..40).map(|n| [corner(n), corner(3 * n + 1), corner(7 * n + 2)]).collect();
        let camera = Camera::new(11, 20, 64);
        let picture = |triangles: &[Triangle]| {
            let mut pixels = vec![EMPTY; 64 * 64];
            triangles.iter().for_each(|triangle| camera.draw(&mut pixels, triangle));
            pixels
        };
        let one = picture(&triangles);
        triangles.reverse();
        assert_eq!(one, picture(&triangles));
        let mut merged = picture(&triangles[..15]);
        merge(&mut merged, picture(&triangles[15..]).into_iter());
        assert_eq!(one, merged);
        assert!(shades(&one).iter().filter(|shade| **shade >= 55).count() > 100);

        for wild in [f32::NAN, f32::INFINITY, f32::MIN, 1e9] {
            picture(&[[[wild, 0.0, 0.0], [0.0, wild, 3.0], [5.0, 5.0, wild]]]);
        }
    }

    #[test]
    fn a_turn_is_a_circle() {
        for unit in 0..32 {
            let camera = Camera::new(unit, 20, 64);
            assert!((camera.cosine.hypot(camera.sine) - 1.0).abs() < 1e-6);
        }
    }
}
