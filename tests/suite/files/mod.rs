//! File formats: what is written is what is read, and bad files are one clear error.

mod bad_files;
mod formats;
