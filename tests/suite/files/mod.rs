//! File formats: what is written is what is read, and bad files are one clear error.

mod arrays;
mod bad_files;
mod block_stream;
mod blocks;
mod corpora;
mod formats;
mod layout;
mod mutations;
mod texts;
