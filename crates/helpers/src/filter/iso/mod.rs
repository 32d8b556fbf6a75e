//! The application Iso-Surface: a scalar field in blocks, its surface by marching cubes, and a picture of the surface
//! from another direction in each unit of work. The chain is read -> extract -> raster -> merge.

mod cubes;
mod field;
mod raster;

use cubes::surface;
use field::{CellBlock, ScalarField};
use raster::{Camera, EMPTY, merge, shades};

use crate::filter::application::{Filter, FilterApplication, FilterCopy, FilterStage};
use crate::filter::words::{floats, word};
use crate::filter::{Error, FilterInput, FilterOutput};

/// Size of a triangle in a buffer, in bytes.
const TRIANGLE: usize = 36;

/// The largest number of triangles in one buffer of 64 KiB.
const BATCH: usize = (64 << 10) / TRIANGLE;

/// The largest number of pixels in one buffer.
const BAND: usize = 16 << 10;

/// The application Iso-Surface, with its parameters.
#[derive(Debug)]
pub struct IsoSurface {
    field: ScalarField,
    /// Cells along each axis of a block.
    block: usize,
    stages: [FilterStage; 4],
}

impl IsoSurface {
    /// Creates a field of `size` samples along each axis from `seed`, in blocks of `block` cells along each axis.
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
            FilterStage { name: "read", is_varied: false, largest: 4 + 4 * samples },
            FilterStage { name: "extract", is_varied: true, largest: TRIANGLE * BATCH },
            FilterStage { name: "raster", is_varied: false, largest: 4 + 4 * BAND },
            FilterStage { name: "merge", is_varied: false, largest: 4 * size * size },
        ];
        Ok(IsoSurface { field: ScalarField::new(size, seed), block, stages })
    }

    /// Returns the width of the square pictures, in pixels.
    pub(crate) fn edge(&self) -> usize {
        self.field.size * 2
    }

    fn camera(&self, unit: u32) -> Camera {
        Camera::new(unit, self.field.size, self.edge())
    }

    fn empty(&self) -> Vec<u32> {
        vec![EMPTY; self.edge() * self.edge()]
    }

    fn nth(&self, n: usize) -> Option<CellBlock> {
        CellBlock::nth(self.field.size, self.block, n)
    }
}

impl FilterApplication for IsoSurface {
    fn stages(&self) -> &[FilterStage] {
        &self.stages
    }

    fn filter(&self, place: FilterCopy) -> Box<dyn Filter + '_> {
        match place.stage {
            0 => Box::new(FieldReadFilter::new(self, place)),
            1 => Box::new(ExtractFilter { iso: self }),
            2 => Box::new(RasterFilter { iso: self }),
            _ => Box::new(MergeFilter { iso: self }),
        }
    }

    fn plain(&self, unit: u32) -> Vec<u8> {
        let (camera, mut pixels) = (self.camera(unit), self.empty());
        let whole = CellBlock::whole(self.field.size);
        let drawn = surface(&whole, &self.field.samples(&whole), |triangle| {
            camera.draw(&mut pixels, &triangle);
            Ok(())
        });
        debug_assert!(drawn.is_ok(), "drawing never fails");
        shades(&pixels)
    }
}

/// The first filter, which sends the field's blocks. It keeps them in memory in place of a disk.
struct FieldReadFilter {
    blocks: Vec<Vec<u8>>,
}

impl FieldReadFilter {
    /// Creates copy c of n. It has every n-th block, beginning with block c.
    fn new(iso: &IsoSurface, place: FilterCopy) -> Self {
        let blocks = (place.copy..).step_by(place.copies).map_while(|n| {
            let samples = iso.field.samples(&iso.nth(n)?);
            let bytes = samples.iter().flat_map(|sample| sample.to_le_bytes());
            Some((n as u32).to_le_bytes().into_iter().chain(bytes).collect())
        });
        FieldReadFilter { blocks: blocks.collect() }
    }
}

impl Filter for FieldReadFilter {
    fn work(&mut self, _: u32, _: &mut FilterInput<'_>, output: &mut FilterOutput<'_>) -> Result<(), Error> {
        self.blocks.iter().try_for_each(|block| output.send(block.clone()))
    }
}

struct ExtractFilter<'a> {
    iso: &'a IsoSurface,
}

impl Filter for ExtractFilter<'_> {
    fn work(
        &mut self,
        _: u32,
        input: &mut FilterInput<'_>,
        output: &mut FilterOutput<'_>,
    ) -> Result<(), Error> {
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

struct RasterFilter<'a> {
    iso: &'a IsoSurface,
}

impl Filter for RasterFilter<'_> {
    fn work(
        &mut self,
        unit: u32,
        input: &mut FilterInput<'_>,
        output: &mut FilterOutput<'_>,
    ) -> Result<(), Error> {
        let (camera, mut pixels) = (self.iso.camera(unit), self.iso.empty());
        while let Some(buffer) = input.take()? {
            for corners in floats(buffer).as_chunks::<9>().0 {
                let [a, b, c, d, e, f, g, h, i] = *corners;
                camera.draw(&mut pixels, &[[a, b, c], [d, e, f], [g, h, i]]);
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

struct MergeFilter<'a> {
    iso: &'a IsoSurface,
}

impl Filter for MergeFilter<'_> {
    fn work(
        &mut self,
        _: u32,
        input: &mut FilterInput<'_>,
        output: &mut FilterOutput<'_>,
    ) -> Result<(), Error> {
        let mut pixels = self.iso.empty();
        while let Some(buffer) = input.take()? {
            let band = pixels.chunks_mut(BAND).nth(word(buffer, 0) as usize);
            let band = band.ok_or(Error::Buffer { filter: "merge", why: "there is no such band" })?;
            merge(band, buffer.as_chunks::<4>().0.iter().skip(1).map(|at| u32::from_le_bytes(*at)));
        }
        output.send(shades(&pixels))
    }
}
