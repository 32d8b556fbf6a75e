//! Reports of what was recorded, in every form.

mod chromium;
mod compare_page;
mod explain_page;
mod forms;
mod hostile;
mod markup;
mod page;
mod recorded;
mod reference;
