//! The application Virtual Microscope: a slide in compressed chunks, of which each unit of work shows a window on a
//! coarser grid. The chain is read -> decompress -> clip -> subsample -> view.

mod slide;

use slide::{SlideArea, compress, decompress, most, pixels};

use crate::filter::application::{Filter, FilterApplication, FilterCopy, FilterStage};
use crate::filter::words::{mixed, word};
use crate::filter::{Error, FilterInput, FilterOutput, SlideUpdate};

/// The length of the area that precedes a buffer's pixels, in bytes.
const HEADER: usize = 16;

/// The ratio of the slide's edge to the edge of a picture.
const ZOOM: u32 = 8;

/// The application Virtual Microscope, with its parameters.
#[derive(Debug)]
pub struct VirtualMicroscope {
    size: u32,
    chunk: u32,
    seed: u64,
    update: SlideUpdate,
    stages: [FilterStage; 5],
}

impl VirtualMicroscope {
    /// Creates a slide of `size` x `size` grey pixels from `seed`, in chunks of `chunk` x `chunk` pixels.
    ///
    /// # Errors
    /// Returns [`Error::Parameter`] if a parameter is out of its range.
    pub fn new(size: u32, chunk: u32, seed: u64, update: SlideUpdate) -> Result<Self, Error> {
        if !(64..=16384).contains(&size) || !size.is_multiple_of(ZOOM) {
            return Err(Error::Parameter(format!(
                "a slide of {size} pixels: give a multiple of 8, 64 to 16384"
            )));
        }
        if !(8..=1024).contains(&chunk) {
            return Err(Error::Parameter(format!("chunks of {chunk} pixels: give 8 to 1024")));
        }
        let most_pixels = chunk.min(size).pow(2) as usize;
        let raw = HEADER + most_pixels;
        let stages = [
            FilterStage { name: "read", is_varied: false, largest: 4 + most(most_pixels) },
            FilterStage { name: "decompress", is_varied: true, largest: raw },
            FilterStage { name: "clip", is_varied: false, largest: raw },
            // Along each axis, a chunk may touch one grid point more than it covers.
            FilterStage {
                name: "subsample",
                is_varied: false,
                largest: HEADER + 2 * (chunk.min(size) as usize / 2 + 2).pow(2),
            },
            FilterStage { name: "view", is_varied: false, largest: (size / ZOOM).pow(2) as usize },
        ];
        Ok(VirtualMicroscope { size, chunk, seed, update, stages })
    }

    /// Returns the width of the square pictures, in pixels.
    pub(crate) fn edge(&self) -> usize {
        (self.size / ZOOM) as usize
    }

    /// Returns the window of a unit, and the number of pixels along each axis for one grid point. The window of a
    /// partial update has a quarter of the slide's edge and may be anywhere on the slide.
    fn window(&self, unit: u32) -> (SlideArea, u32) {
        let (wide, factor) = match self.update {
            SlideUpdate::Complete => (self.size, ZOOM),
            SlideUpdate::Partial => (self.size / 4, ZOOM / 4),
        };
        let place = |axis: u64| {
            (mixed(self.seed ^ mixed(u64::from(unit) << 1 | axis)) % u64::from(self.size - wide + 1)) as u32
        };
        (SlideArea { x: place(0), y: place(1), wide, high: wide }, factor)
    }

    /// Splits a buffer into its area and the rest. Returns `None` if the area is too large or not on the slide.
    fn opened<'b>(&self, buffer: &'b [u8]) -> Option<(SlideArea, &'b [u8])> {
        let area = SlideArea {
            x: word(buffer, 0),
            y: word(buffer, 1),
            wide: word(buffer, 2),
            high: word(buffer, 3),
        };
        let fits = |first: u32, length: u32| {
            length <= self.chunk && first <= self.size && first + length <= self.size
        };
        (fits(area.x, area.wide) && fits(area.y, area.high)).then_some((area, buffer.get(HEADER..)?))
    }

    /// Splits a buffer into its area and its pixels. Returns an error unless there is one byte for each pixel.
    fn pixels<'b>(&self, filter: &'static str, buffer: &'b [u8]) -> Result<(SlideArea, &'b [u8]), Error> {
        let opened = self.opened(buffer).filter(|(area, pixels)| pixels.len() == area.pixels());
        opened.ok_or(Error::Buffer { filter, why: "no part of the slide has such pixels" })
    }
}

fn closed(area: SlideArea, rest: impl IntoIterator<Item = u8>) -> Vec<u8> {
    let words = [area.x, area.y, area.wide, area.high];
    words.into_iter().flat_map(u32::to_le_bytes).chain(rest).collect()
}

impl FilterApplication for VirtualMicroscope {
    fn stages(&self) -> &[FilterStage] {
        &self.stages
    }

    fn filter(&self, place: FilterCopy) -> Box<dyn Filter + '_> {
        match place.stage {
            0 => Box::new(SlideReadFilter::new(self, place)),
            1 => Box::new(DecompressFilter { vm: self }),
            2 => Box::new(ClipFilter { vm: self }),
            3 => Box::new(SubsampleFilter { vm: self }),
            _ => Box::new(ViewFilter { vm: self }),
        }
    }

    fn plain(&self, unit: u32) -> Vec<u8> {
        let (window, factor) = self.window(unit);
        let grey = pixels(self.seed, window);
        let edge = window.wide / factor;
        let points = (0..edge).flat_map(|y| (0..edge).map(move |x| (x * factor, y * factor)));
        let mean = |(x, y): (u32, u32)| {
            let square = SlideArea { x, y, wide: factor, high: factor };
            let sum: u32 =
                square.places().map(|(x, y)| u32::from(grey[(y * window.wide + x) as usize])).sum();
            (sum / (factor * factor)) as u8
        };
        points.map(mean).collect()
    }
}

/// The first filter, which sends the chunks of a window. It keeps all compressed chunks in memory in place of a disk.
struct SlideReadFilter<'a> {
    vm: &'a VirtualMicroscope,
    chunks: Vec<(SlideArea, Vec<u8>)>,
}

impl<'a> SlideReadFilter<'a> {
    /// Creates copy c of n. It has every n-th chunk, beginning with chunk c.
    fn new(vm: &'a VirtualMicroscope, place: FilterCopy) -> Self {
        let numbers = (place.copy as u32..).step_by(place.copies);
        let chunks = numbers.map_while(|n| {
            let area = SlideArea::chunk(vm.size, vm.chunk, n)?;
            let packed = compress(&pixels(vm.seed, area));
            Some((area, n.to_le_bytes().into_iter().chain(packed).collect()))
        });
        SlideReadFilter { vm, chunks: chunks.collect() }
    }
}

impl Filter for SlideReadFilter<'_> {
    fn work(
        &mut self,
        unit: u32,
        _: &mut FilterInput<'_>,
        output: &mut FilterOutput<'_>,
    ) -> Result<(), Error> {
        let (window, _) = self.vm.window(unit);
        let seen = self.chunks.iter().filter(|(area, _)| area.common(&window).is_some());
        seen.map(|(_, chunk)| chunk).try_for_each(|chunk| output.send(chunk.clone()))
    }
}

struct DecompressFilter<'a> {
    vm: &'a VirtualMicroscope,
}

impl Filter for DecompressFilter<'_> {
    fn work(
        &mut self,
        _: u32,
        input: &mut FilterInput<'_>,
        output: &mut FilterOutput<'_>,
    ) -> Result<(), Error> {
        while let Some(buffer) = input.take()? {
            let area = SlideArea::chunk(self.vm.size, self.vm.chunk, word(buffer, 0));
            let grey = area.and_then(|area| Some((area, decompress(buffer.get(4..)?, area.pixels())?)));
            let wrong = Error::Buffer { filter: "decompress", why: "no chunk of the slide has such bytes" };
            let (area, grey) = grey.ok_or(wrong)?;
            output.send(closed(area, grey))?;
        }
        Ok(())
    }
}

struct ClipFilter<'a> {
    vm: &'a VirtualMicroscope,
}

impl Filter for ClipFilter<'_> {
    fn work(
        &mut self,
        unit: u32,
        input: &mut FilterInput<'_>,
        output: &mut FilterOutput<'_>,
    ) -> Result<(), Error> {
        let (window, _) = self.vm.window(unit);
        while let Some(buffer) = input.take()? {
            let (area, grey) = self.vm.pixels("clip", buffer)?;
            let Some(kept) = area.common(&window) else { continue };
            let rows =
                grey.chunks(area.wide as usize).skip((kept.y - area.y) as usize).take(kept.high as usize);
            let first = (kept.x - area.x) as usize;
            let part = rows.flat_map(|row| &row[first..first + kept.wide as usize]).copied();
            output.send(closed(kept, part))?;
        }
        Ok(())
    }
}

/// The filter that adds up the pixels of each grid point. A point may have pixels of several chunks, so only the last
/// filter can divide the sums.
struct SubsampleFilter<'a> {
    vm: &'a VirtualMicroscope,
}

impl Filter for SubsampleFilter<'_> {
    fn work(
        &mut self,
        unit: u32,
        input: &mut FilterInput<'_>,
        output: &mut FilterOutput<'_>,
    ) -> Result<(), Error> {
        let (window, factor) = self.vm.window(unit);
        while let Some(buffer) = input.take()? {
            let (area, grey) = self.vm.pixels("subsample", buffer)?;
            let inside = area.common(&window) == Some(area);
            if !inside {
                return Err(Error::Buffer { filter: "subsample", why: "pixels are not in the window" });
            }
            let point = |x: u32, y: u32| ((x - window.x) / factor, (y - window.y) / factor);
            let (x, y) = point(area.x, area.y);
            let (right, bottom) = point(area.x + area.wide - 1, area.y + area.high - 1);
            let grid = SlideArea { x, y, wide: right - x + 1, high: bottom - y + 1 };
            let mut sums = vec![0_u16; grid.pixels()];
            for ((px, py), grey) in area.places().zip(grey) {
                let (px, py) = point(px, py);
                // A sum has at most 64 pixels of 255.
                sums[((py - y) * grid.wide + px - x) as usize] += u16::from(*grey);
            }
            output.send(closed(grid, sums.into_iter().flat_map(u16::to_le_bytes)))?;
        }
        Ok(())
    }
}

struct ViewFilter<'a> {
    vm: &'a VirtualMicroscope,
}

impl Filter for ViewFilter<'_> {
    fn work(
        &mut self,
        unit: u32,
        input: &mut FilterInput<'_>,
        output: &mut FilterOutput<'_>,
    ) -> Result<(), Error> {
        let (_, factor) = self.vm.window(unit);
        let edge = self.vm.edge();
        let mut sums = vec![0_u32; edge * edge];
        while let Some(buffer) = input.take()? {
            let whole = SlideArea { x: 0, y: 0, wide: edge as u32, high: edge as u32 };
            let opened = self.vm.opened(buffer).filter(|(grid, parts)| {
                grid.common(&whole) == Some(*grid) && parts.len() == 2 * grid.pixels()
            });
            let wrong = Error::Buffer { filter: "view", why: "there are no such grid points" };
            let (grid, parts) = opened.ok_or(wrong)?;
            for ((x, y), part) in grid.places().zip(parts.as_chunks::<2>().0) {
                let sum = &mut sums[y as usize * edge + x as usize];
                *sum = sum.saturating_add(u32::from(u16::from_le_bytes(*part)));
            }
        }
        output.send(sums.into_iter().map(|sum| (sum / (factor * factor)) as u8).collect())
    }
}
