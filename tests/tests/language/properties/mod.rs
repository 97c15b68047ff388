//! Properties of the language, tested with random inputs. The inputs are the same in every run;
//! `PTC_PROPERTY_SCALE=20` tries twenty times as many.
//!
//! # Layout
//! - [`values`]: random values, in several representations each
//! - [`printing`]: what is printed reads back as itself
//! - [`relations`]: equality, hashes and the order agree
//! - [`maps`]: maps that share keys against a naive model; [`floods`]: maps with colliding keys
//! - [`writes`]: programs that write by keyword against a naive model
//! - [`sorting`]: sorts are stable permutations
//! - [`callbacks`]: every function that calls functions against a naive model, with calls that suspend
//! - [`forwarding`]: functions without a frame behave like functions with one
//! - [`leaves`]: so do functions of one operation, and reductions that stay in one window
//! - [`loops`]: loops that count take short cuts
//! - [`waiting`]: the memory of a waiting program depends only on itself
//! - [`preemption`]: preempted programs end the same
//! - [`contexts`]: consecutive contexts are read as each alone
//! - [`cases`]: how programs of a table are checked
//! - [`flows`]: what a plan of data flows does not name has no influence
//! - [`flow_programs`]: the same for programs with loops, callbacks and earlier programs
//! - [`flow_values`]: what the values of a call do not carry has no influence on it
//! - [`programs`]: random programs run the same with every optimisation off

mod callbacks;
mod cases;
mod contexts;
mod floods;
mod flow_programs;
mod flow_values;
mod flows;
mod forwarding;
mod leaves;
mod loops;
mod maps;
mod preemption;
mod printing;
mod programs;
mod relations;
mod sorting;
mod values;
mod waiting;
mod writes;

use ptc_tests::properties::for_all;
