use refrain_tracefile::Trace;

/// Streams that are told together come back as rows of numbers.
pub fn as_rows(mut trace: Trace) -> Trace {
    for stream in &mut trace.bundle.streams {
        if let Some(flat) = stream.flat(1 << 16) {
            *stream = flat.stream().unwrap();
        }
    }
    trace
}
