//! Objects on disk: what was acknowledged is there, whatever happens, and nothing wrong is ever read.

mod children;
mod counted;
mod damage;
mod directory;
mod fixture;
mod killed;
mod power;
mod service;
