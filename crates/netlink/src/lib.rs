//! landspeed netlink.
