//! Runs programs that another process sends: tests of one architecture compile on another, and run here under an emulator.
//!
//! Standard input has one message per run, standard output one per result; `wire` describes them.

mod measure;
mod trust;
mod wire;

use monopour_program::Program;
use monopour_runtime::{Device, DeviceChoice};
use std::io::{stdin, stdout};

fn main() -> std::io::Result<()> {
    let device = Device::open(&DeviceChoice::Cpu).expect("there is always a CPU");
    let (mut from, mut to) = (stdin().lock(), stdout().lock());
    while let Some(request) = wire::read(&mut from)? {
        let answer = answer(&device, &request).unwrap_or_else(|error| vec![error.into_bytes()]);
        wire::write(&mut to, &answer)?;
    }
    Ok(())
}

fn answer(device: &Device, request: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, String> {
    let request = wire::parse_request(request).ok_or("this is no request")?;
    let program = Program::decode(request.program).map_err(|e| e.to_string())?;
    let measured =
        measure::run(device, trust::of_the_parent(program), request.threads, &request.first, &request.inputs)?;
    Ok(wire::answer(&measured.outputs, &measured.cost))
}
