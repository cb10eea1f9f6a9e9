//! Every operation of the specification, case by case, over both backends.

mod world;
