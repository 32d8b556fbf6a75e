//! Tests of all forms of reports on recorded data.

mod chromium;
mod forms;
mod gauges;
mod hostile;
mod markup;
mod pages;
mod recorded;
mod result;
