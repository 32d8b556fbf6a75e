//! Writes grey pictures as PNG files (PNG, third edition, W3C 2025, sections 5 and 11).

use std::io::{self, Write};

use flate2::write::ZlibEncoder;
use flate2::{Compression, Crc};

/// Returns the PNG file of a square picture of 8 bits per pixel, such as
/// [`QueryOutcome::picture`](crate::filter::QueryOutcome::picture).
///
/// # Errors
/// Returns an error if the picture cannot be compressed.
pub fn png(pixels: &[u8]) -> io::Result<Vec<u8>> {
    let edge = pixels.len().isqrt();
    let mut rows = ZlibEncoder::new(Vec::new(), Compression::default());
    for row in pixels.chunks_exact(edge.max(1)) {
        // Filter type 0: none.
        rows.write_all(&[0])?;
        rows.write_all(row)?;
    }
    let size = (edge as u32).to_be_bytes();
    // 8 bits, grey, and the only defined methods.
    let header = [&size, &size, [8, 0, 0, 0, 0].as_slice()].concat();
    let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
    chunk(&mut bytes, b"IHDR", &header);
    chunk(&mut bytes, b"IDAT", &rows.finish()?);
    chunk(&mut bytes, b"IEND", &[]);
    Ok(bytes)
}

fn chunk(to: &mut Vec<u8>, name: &[u8; 4], data: &[u8]) {
    to.extend((data.len() as u32).to_be_bytes());
    let mut sum = Crc::new();
    for part in [name, data] {
        sum.update(part);
        to.extend(part);
    }
    to.extend(sum.sum().to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_begins_and_ends_as_png_does() {
        let bytes = png(&[0, 100, 200, 255]).unwrap();
        assert!(bytes.starts_with(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x02\0\0\0\x02\x08\0\0\0\0"));
        // The checksum of every PNG's last chunk is the same.
        assert!(bytes.ends_with(b"\0\0\0\0IEND\xae\x42\x60\x82"));
    }
}
