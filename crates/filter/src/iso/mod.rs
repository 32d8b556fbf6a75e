//! Iso-Surface: a scalar field in blocks, its surface by marching cubes, and in each unit of work a picture of it from
//! another direction. The chain is read -> extract -> raster -> merge.

mod cubes;
mod field;
mod raster;

use cubes::surface;
use field::{Block, Field};
use raster::{EMPTY, View, merge, shades};

use crate::application::{Application, Filter, Place, Stage};
use crate::words::{floats, word};
use crate::{Error, Input, Output};

/// Size of a triangle in a buffer, in bytes.
const TRIANGLE: usize = 36;

/// Most triangles in one buffer: 64 KiB.
const BATCH: usize = (64 << 10) / TRIANGLE;

/// Most pixels in one buffer.
const BAND: usize = 16 << 10;

/// The application Iso-Surface, with its parameters.
#[derive(Debug)]
pub struct Iso {
    field: Field,
    /// Cells along each axis of a block.
    block: usize,
    stages: [Stage; 4],
}

impl Iso {
    /// Makes a field of `size` samples along each axis, from `seed`, in blocks of `block` cells along each axis.
    ///
    /// # Errors
    /// Returns [`Error::Parameter`] if a parameter is out of its range.
    pub fn new(size: u32, block: u32, seed: u64) -> Result<Self, Error> {
        if !(4..=512).contains(&size) {
            return Err(Error::Parameter(format!("a field of {size} samples along an axis: give 4 to 512")));
        }
        if !(2..=64).contains(&block) {
            return Err(Error::Parameter(format!("blocks of {block} cells along an axis: give 2 to 64")));
        }
        let (size, block) = (size as usize, block as usize);
        let samples = (block.min(size - 1) + 1).pow(3);
        let stages = [
            Stage { name: "read", is_varied: false, largest: 4 + 4 * samples },
            Stage { name: "extract", is_varied: true, largest: TRIANGLE * BATCH },
            Stage { name: "raster", is_varied: false, largest: 4 + 4 * BAND },
            Stage { name: "merge", is_varied: false, largest: 4 * size * size },
        ];
        Ok(Iso { field: Field::new(size, seed), block, stages })
    }

    /// Returns the edge of the pictures in pixels.
    pub(crate) fn edge(&self) -> usize {
        self.field.size * 2
    }

    fn view(&self, unit: u32) -> View {
        View::new(unit, self.field.size, self.edge())
    }

    fn empty(&self) -> Vec<u32> {
        vec![EMPTY; self.edge() * self.edge()]
    }

    fn nth(&self, n: usize) -> Option<Block> {
        Block::nth(self.field.size, self.block, n)
    }
}

impl Application for Iso {
    fn stages(&self) -> &[Stage] {
        &self.stages
    }

    fn filter(&self, place: Place) -> Box<dyn Filter + '_> {
        match place.stage {
            0 => Box::new(Read::new(self, place)),
            1 => Box::new(Extract { iso: self }),
            2 => Box::new(Raster { iso: self }),
            _ => Box::new(Merge { iso: self }),
        }
    }

    fn plain(&self, unit: u32) -> Vec<u8> {
        let (view, mut pixels) = (self.view(unit), self.empty());
        let whole = Block::whole(self.field.size);
        let drawn = surface(&whole, &self.field.samples(&whole), |triangle| {
            view.draw(&mut pixels, &triangle);
            Ok(())
        });
        debug_assert!(drawn.is_ok(), "drawing never fails");
        shades(&pixels)
    }
}

/// The first filter. It keeps its blocks in memory, as a disk would.
struct Read {
    blocks: Vec<Vec<u8>>,
}

impl Read {
    /// Makes copy c of n, which has every n-th block, beginning with block c.
    fn new(iso: &Iso, place: Place) -> Self {
        let blocks = (place.copy..).step_by(place.copies).map_while(|n| {
            let samples = iso.field.samples(&iso.nth(n)?);
            let bytes = samples.iter().flat_map(|sample| sample.to_le_bytes());
            Some((n as u32).to_le_bytes().into_iter().chain(bytes).collect())
        });
        Read { blocks: blocks.collect() }
    }
}

impl Filter for Read {
    fn work(&mut self, _: u32, _: &mut Input<'_>, output: &mut Output<'_>) -> Result<(), Error> {
        self.blocks.iter().try_for_each(|block| output.send(block.clone()))
    }
}

struct Extract<'a> {
    iso: &'a Iso,
}

impl Filter for Extract<'_> {
    fn work(&mut self, _: u32, input: &mut Input<'_>, output: &mut Output<'_>) -> Result<(), Error> {
        let mut batch = Vec::with_capacity(TRIANGLE * BATCH);
        while let Some(buffer) = input.take()? {
            let samples = floats(buffer.get(4..).unwrap_or_default());
            let block = self.iso.nth(word(buffer, 0) as usize).filter(|block| block.len() == samples.len());
            let block = block.ok_or(Error::Buffer { filter: "extract", why: "there is no such block" })?;
            surface(&block, &samples, |triangle| {
                batch.extend(triangle.as_flattened().iter().flat_map(|at| at.to_le_bytes()));
                if batch.len() < TRIANGLE * BATCH {
                    return Ok(());
                }
                output.send(std::mem::replace(&mut batch, Vec::with_capacity(TRIANGLE * BATCH)))
            })?;
        }
        if batch.is_empty() { Ok(()) } else { output.send(batch) }
    }
}

struct Raster<'a> {
    iso: &'a Iso,
}

impl Filter for Raster<'_> {
    fn work(&mut self, unit: u32, input: &mut Input<'_>, output: &mut Output<'_>) -> Result<(), Error> {
        let (view, mut pixels) = (self.iso.view(unit), self.iso.empty());
        while let Some(buffer) = input.take()? {
            for corners in floats(buffer).as_chunks::<9>().0 {
                let [a, b, c, d, e, f, g, h, i] = *corners;
                view.draw(&mut pixels, &[[a, b, c], [d, e, f], [g, h, i]]);
            }
        }
        for (n, band) in
            (0_u32..).zip(pixels.chunks(BAND)).filter(|(_, band)| band.iter().any(|at| *at != EMPTY))
        {
            let words = [n].into_iter().chain(band.iter().copied());
            output.send(words.flat_map(u32::to_le_bytes).collect())?;
        }
        Ok(())
    }
}

struct Merge<'a> {
    iso: &'a Iso,
}

impl Filter for Merge<'_> {
    fn work(&mut self, _: u32, input: &mut Input<'_>, output: &mut Output<'_>) -> Result<(), Error> {
        let mut pixels = self.iso.empty();
        while let Some(buffer) = input.take()? {
            let band = pixels.chunks_mut(BAND).nth(word(buffer, 0) as usize);
            let band = band.ok_or(Error::Buffer { filter: "merge", why: "there is no such band" })?;
            merge(band, buffer.as_chunks::<4>().0.iter().skip(1).map(|at| u32::from_le_bytes(*at)));
        }
        output.send(shades(&pixels))
    }
}
