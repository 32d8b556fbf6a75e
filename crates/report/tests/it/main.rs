//! Reports of what was recorded, in every form.

mod chromium;
mod forms;
mod hostile;
mod markup;
mod pages;
mod recorded;
mod reference;
mod result;
