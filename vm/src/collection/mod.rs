//! Implements the operations on collections that builtins share: conversion to sequences, access by key, and adding
//! items. Growing and reading collections costs fuel and memory (see [`crate::value::build`]).

#![deny(clippy::disallowed_methods, clippy::disallowed_types, clippy::disallowed_macros)]

pub(crate) mod adding;
pub(crate) mod lookup;
pub(crate) mod seq;
