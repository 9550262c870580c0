//! Ranks that are threads of one process, for tests.

use refrain_fold::bundle::Link;
use refrain_mpi::{LocalTransport, Transport, TransportError};

pub struct Wire(pub LocalTransport);

impl Link for Wire {
    type Error = TransportError;
    fn send(&mut self, to: u32, bytes: &[u8]) -> Result<(), TransportError> {
        self.0.send(to, bytes)
    }
    fn recv(&mut self, from: u32) -> Result<Vec<u8>, TransportError> {
        self.0.recv(from)
    }
}
