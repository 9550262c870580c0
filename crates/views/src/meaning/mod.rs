//! What calls mean to MPI: which messages and collectives they are about, on which communicators, through which requests;
//! and which send meets which receive.

pub(crate) mod addresses;
pub(crate) mod comms;
pub(crate) mod messages;
pub(crate) mod requests;
pub(crate) mod roles;
