//! Tests of all forms of reports on recorded data.

mod chromium;
mod forms;
mod hostile;
mod markup;
mod pages;
mod recorded;
mod result;
