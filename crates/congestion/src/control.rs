//! The description of a congestion control.

use crate::ops::CongestionOps;

/// The description of one congestion control: a row of the table [`crate::CONTROLS`].
#[derive(Debug)]
pub struct Control {
    /// The control's name in landspeed, such as "bic". The folder and the C source of the control have the same name.
    /// The name never begins with `ls_`.
    pub name: &'static str,
    /// The name for the socket option `TCP_CONGESTION`. Our controls have names that begin with `ls_`, so that they
    /// do not clash with the kernel's.
    pub kernel_name: &'static str,
    /// The full name in the literature.
    pub title: &'static str,
    /// The name in tables: the usual short form of the title.
    pub short: &'static str,
    /// One sentence about what the control does.
    pub about: &'static str,
    /// The publication that defines the control.
    pub source: &'static str,
    /// The control's constants, each with its place in the source.
    pub parameters: &'static [ControlParameter],
    /// The departures of our code from the source, each with its reason; empty if there are none.
    pub departures: &'static [&'static str],
    /// True if the control judges one-way delays. It then works only if both ends send TCP timestamps.
    pub needs_timestamps: bool,
    /// True if the control sets its own window and pacing rate. The driver must then call its `cong_control`, not its
    /// `cong_avoid`.
    pub is_rate_based: bool,
    /// The kernel module of Linux's own control of this name; `None` if Linux has none, or always has it.
    pub module: Option<&'static str>,
    /// The object file of the control compiled for BPF; `None` for the kernel's own controls.
    pub(crate) object: Option<&'static [u8]>,
    pub(crate) ops: &'static CongestionOps,
}

impl Control {
    /// Returns true if the kernel has this control itself. The C source here is then only for the simulator and is
    /// never loaded.
    pub fn is_kernels(&self) -> bool {
        self.object.is_none()
    }

    /// Returns the end of an error message, which offers Linux's own control as a replacement; empty if Linux has none.
    pub(crate) fn in_its_place(&self) -> String {
        let name = self.name;
        self.module.map_or_else(String::new, |module| {
            format!("; Linux's own needs no BPF: `modprobe {module}`, then --set socket-congestion={name}")
        })
    }
}

/// A constant of a control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ControlParameter {
    pub symbol: &'static str,
    /// The value, with the unit.
    pub value: &'static str,
    /// The section, equation or table of the source that gives the value.
    pub from: &'static str,
}

#[cfg(test)]
mod tests {
    use crate::CONTROLS;

    #[test]
    fn the_module_of_linux_is_named_where_it_has_the_control() {
        for row in CONTROLS {
            let (said, module) = (row.in_its_place(), format!("modprobe tcp_{}`", row.name));
            assert_eq!(row.module.is_some(), said.contains(&module), "{}: {said}", row.name);
        }
        assert!(CONTROLS.iter().any(|row| row.module.is_some() && !row.is_kernels()));
    }
}
