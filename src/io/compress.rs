//! gzip and Zstandard: compressed files are read and written as if they were not compressed.
//!
//! Promise: memory is that of the decoders' windows, whatever a stream claims; a stream that ends early is called
//! truncated, any other fault damaged, checksums included. Both decoders read streams of several members.
//! Independent of: matrices.

use crate::io::format::Compression;
use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use std::cell::Cell;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::rc::Rc;

/// Largest window of a Zstandard stream: that of `zstd --long`.
const MAXIMUM_WINDOW_BYTES: u64 = 128 << 20;

/// Bytes read from the packed stream at a time.
const BUFFER_BYTES: usize = 256 << 10;

/// Bytes that make one frame of a Zstandard file; their bytes in memory are a few times that.
const FRAME_BYTES: usize = 4 << 20;

/// The compression that the first bytes of a stream show.
pub(super) fn by_content(bytes: &[u8]) -> Compression {
    match bytes {
        [0x1f, 0x8b, ..] => Compression::Gzip,
        // Skippable frames may come first.
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Compression::Zstd,
        _ => Compression::None,
    }
}

/// The content of `reader`, unpacked.
pub(super) fn unpack<'r>(reader: impl Read + 'r, compression: Compression) -> Box<dyn Read + 'r> {
    let ended = Rc::new(Cell::new(false));
    let source = BufReader::with_capacity(BUFFER_BYTES, Watched { reader, ended: ended.clone() });
    match compression {
        Compression::None => Box::new(source),
        Compression::Gzip => Box::new(Unpacked { decoder: MultiGzDecoder::new(source), name: "gzip", ended }),
        Compression::Zstd => Box::new(Unpacked { decoder: ZstdReader::new(source), name: "zstd", ended }),
    }
}

/// Notes where the packed stream has ended.
struct Watched<R> {
    reader: R,
    ended: Rc<Cell<bool>>,
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(out)?;
        self.ended.set(count == 0);
        Ok(count)
    }
}

/// A decoder whose errors describe the defect of the file.
struct Unpacked<D> {
    decoder: D,
    name: &'static str,
    ended: Rc<Cell<bool>>,
}

impl<D: Read> Read for Unpacked<D> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.decoder.read(out).map_err(|error| match error.raw_os_error() {
            _ if error.kind() == io::ErrorKind::Interrupted => error,
            // The system's own refusal to read.
            Some(_) => error,
            None if self.ended.get() => {
                let text = format!("the {} stream is truncated", self.name);
                io::Error::new(io::ErrorKind::UnexpectedEof, text)
            }
            None => io::Error::new(io::ErrorKind::InvalidData, format!("the {} stream is damaged: {error}", self.name)),
        })
    }
}

/// The frames of a Zstandard stream, one after the other.
struct ZstdReader<R> {
    source: R,
    decoder: FrameDecoder,
    in_frame: bool,
}

impl<R: BufRead> ZstdReader<R> {
    fn new(source: R) -> ZstdReader<R> {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(MAXIMUM_WINDOW_BYTES);
        ZstdReader { source, decoder, in_frame: false }
    }

    /// Begins the next frame; `false` at the end of the stream.
    fn begin(&mut self) -> io::Result<bool> {
        loop {
            if self.source.fill_buf()?.is_empty() {
                return Ok(false);
            }
            match self.decoder.reset(&mut self.source) {
                Ok(()) => {
                    self.in_frame = true;
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { length, .. })) => {
                    let skipped = io::copy(&mut (&mut self.source).take(length.into()), &mut io::sink())?;
                    if skipped < u64::from(length) {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
    }

    /// Compares the checksum with the one in the stream, where there is one.
    fn end(&mut self) -> io::Result<()> {
        self.in_frame = false;
        match (self.decoder.get_checksum_from_data(), self.decoder.get_calculated_checksum()) {
            (Some(stated), Some(found)) if stated != found => Err(io::Error::other("the checksum is wrong")),
            _ => Ok(()),
        }
    }
}

impl<R: BufRead> Read for ZstdReader<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.in_frame && self.decoder.can_collect() > 0 {
                return self.decoder.read(out);
            }
            if self.in_frame && self.decoder.is_finished() {
                self.end()?;
            }
            if !self.in_frame && !self.begin()? {
                return Ok(0);
            }
            if !self.decoder.is_finished() {
                let step = BlockDecodingStrategy::UptoBlocks(1);
                self.decoder.decode_blocks(&mut self.source, step).map_err(io::Error::other)?;
            }
        }
    }
}

/// An output that packs all bytes written to it. [`Packer::finish`] writes the rest.
pub(super) enum Packer<W: Write> {
    Plain(W),
    Gzip(GzEncoder<W>),
    /// Bytes that are not a whole frame yet.
    Zstd(W, Vec<u8>),
}

impl<W: Write> Packer<W> {
    /// An output to `writer`.
    pub fn new(writer: W, compression: Compression) -> Packer<W> {
        match compression {
            Compression::None => Packer::Plain(writer),
            Compression::Gzip => Packer::Gzip(GzEncoder::new(writer, flate2::Compression::default())),
            Compression::Zstd => Packer::Zstd(writer, Vec::new()),
        }
    }

    /// Writes the rest.
    ///
    /// # Errors
    /// The errors of the output.
    pub fn finish(mut self) -> io::Result<()> {
        if let Packer::Zstd(writer, pending) = &mut self {
            writer.write_all(&compress_to_vec(pending.as_slice(), CompressionLevel::Fastest))?;
        }
        match self {
            Packer::Gzip(encoder) => encoder.finish()?.flush(),
            Packer::Plain(mut writer) | Packer::Zstd(mut writer, _) => writer.flush(),
        }
    }
}

impl<W: Write> Write for Packer<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Packer::Plain(writer) => writer.write(bytes),
            Packer::Gzip(encoder) => encoder.write(bytes),
            Packer::Zstd(writer, pending) => {
                let count = bytes.len().min(FRAME_BYTES - pending.len());
                pending.extend_from_slice(&bytes[..count]);
                if pending.len() == FRAME_BYTES {
                    writer.write_all(&compress_to_vec(pending.as_slice(), CompressionLevel::Fastest))?;
                    pending.clear();
                }
                Ok(count)
            }
        }
    }

    /// Packed bytes are written in whole frames, with [`Packer::finish`] at the end.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(bytes: &[u8], compression: Compression) -> Vec<u8> {
        let mut out = Vec::new();
        let mut packer = Packer::new(&mut out, compression);
        packer.write_all(bytes).unwrap();
        packer.finish().unwrap();
        out
    }

    fn unpacked(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        unpack(bytes, by_content(bytes)).read_to_end(&mut out)?;
        Ok(out)
    }

    #[test]
    fn round_trips_and_several_members() {
        let text: Vec<u8> = (0..5_000_000u64).map(|at| b"0123456789,\n"[(at * at % 97 % 12) as usize]).collect();
        for compression in [Compression::None, Compression::Gzip, Compression::Zstd] {
            let bytes = packed(&text, compression);
            assert_eq!(by_content(&bytes), compression);
            assert!(compression == Compression::None || bytes.len() < text.len());
            assert!(unpacked(&bytes).unwrap() == text);
            if compression != Compression::None {
                assert!(unpacked(&[bytes.clone(), bytes].concat()).unwrap() == [text.clone(), text.clone()].concat());
            }
        }
        assert_eq!(unpacked(&packed(b"", Compression::Zstd)).unwrap(), b"");
        let skippable = [&[0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3][..], &packed(b"abc", Compression::Zstd)];
        assert_eq!(unpacked(&skippable.concat()).unwrap(), b"abc");
    }

    #[test]
    fn every_truncation_is_named_and_no_change_is_overlooked() {
        let text = b"1.25,2.5\n3,4\n".repeat(20);
        for compression in [Compression::Gzip, Compression::Zstd] {
            let bytes = packed(&text, compression);
            for length in 4..bytes.len() {
                let error = unpacked(&bytes[..length]).unwrap_err().to_string();
                assert!(error.ends_with("stream is truncated"), "{compression:?} {length}: {error}");
            }
            for at in 0..8 * bytes.len() {
                let mut changed = bytes.clone();
                changed[at / 8] ^= 1 << (at % 8);
                if by_content(&changed) == compression {
                    // Some bits of a header do not matter.
                    assert!(unpacked(&changed).is_ok_and(|found| found == text) || unpacked(&changed).is_err());
                }
            }
        }
    }
}
