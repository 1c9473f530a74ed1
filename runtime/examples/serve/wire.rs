//! Messages between a test and the process that runs its programs.
//!
//! A message is a number of blocks, and for each its length and its bytes; numbers are 64 bits, little-endian.
//! A tensor is two blocks: its type and sizes as text, `f32 2 3`, and its elements.
//! A request: the program, the number of threads as text, the inputs of a first run, as many of the run that counts.
//! An answer: an error as text; or nothing, the costs as text, and the results.
#![allow(dead_code, reason = "each of the two processes uses one side")]

use monopour_program::DType;
use monopour_runtime::HostTensor;
use std::io::{ErrorKind, Read, Result, Write};

/// Sends a message.
///
/// # Errors
/// Those of the stream.
pub fn write(to: &mut impl Write, blocks: &[Vec<u8>]) -> Result<()> {
    to.write_all(&(blocks.len() as u64).to_le_bytes())?;
    for block in blocks {
        to.write_all(&(block.len() as u64).to_le_bytes())?;
        to.write_all(block)?;
    }
    to.flush()
}

/// The next message; `None` at the end.
///
/// # Errors
/// Those of the stream.
pub fn read(from: &mut impl Read) -> Result<Option<Vec<Vec<u8>>>> {
    let count = match read_number(from) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
        count => count?,
    };
    let block = |_| {
        let mut block = vec![0; read_number(from)? as usize];
        from.read_exact(&mut block)?;
        Ok(block)
    };
    (0..count).map(block).collect::<Result<_>>().map(Some)
}

fn read_number(from: &mut impl Read) -> Result<u64> {
    let mut bytes = [0; 8];
    from.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

/// A request to run the encoded `program`.
pub fn request(program: Vec<u8>, threads: usize, first: &[HostTensor], inputs: &[HostTensor]) -> Vec<Vec<u8>> {
    let mut blocks = vec![program, threads.to_string().into_bytes()];
    blocks.extend(first.iter().chain(inputs).flat_map(tensor_blocks));
    blocks
}

/// The parts of a [`request`].
pub struct Request<'a> {
    pub program: &'a [u8],
    pub threads: usize,
    pub first: Vec<HostTensor>,
    pub inputs: Vec<HostTensor>,
}

/// Takes a [`request`] apart.
pub fn parse_request(blocks: &[Vec<u8>]) -> Option<Request<'_>> {
    let [program, threads, rest @ ..] = blocks else { return None };
    let threads = text(threads)?.parse().ok()?;
    let mut first = parse_tensors(rest)?;
    let inputs = first.split_off(first.len() / 2);
    Some(Request { program, threads, first, inputs })
}

/// The answer of a run.
pub fn answer(outputs: &[HostTensor], cost: &[u64; 6]) -> Vec<Vec<u8>> {
    let cost = cost.map(|n| n.to_string()).join(" ");
    let mut blocks = vec![vec![], cost.into_bytes()];
    blocks.extend(outputs.iter().flat_map(tensor_blocks));
    blocks
}

/// The results and costs of an [`answer`].
///
/// # Errors
/// That of the run.
pub fn parse_answer(blocks: &[Vec<u8>]) -> std::result::Result<(Vec<HostTensor>, [u64; 6]), String> {
    match blocks {
        [error] => Err(String::from_utf8_lossy(error).into_owned()),
        [_, cost, rest @ ..] => {
            let numbers = text(cost).and_then(|t| t.split(' ').map(|n| n.parse().ok()).collect::<Option<Vec<u64>>>());
            let cost = numbers.and_then(|n| n.try_into().ok()).ok_or("the answer has no costs")?;
            Ok((parse_tensors(rest).ok_or("the answer has damaged results")?, cost))
        }
        [] => Err("the answer is empty".to_owned()),
    }
}

fn tensor_blocks(tensor: &HostTensor) -> [Vec<u8>; 2] {
    let sizes: String = tensor.shape().iter().map(|d| format!(" {d}")).collect();
    [format!("{}{sizes}", tensor.dtype()).into_bytes(), tensor.data().to_vec()]
}

fn parse_tensors(blocks: &[Vec<u8>]) -> Option<Vec<HostTensor>> {
    let tensor = |pair: &[Vec<u8>]| {
        let mut words = text(&pair[0])?.split(' ');
        let dtype = DType::parse(words.next()?)?;
        let shape = words.map(|d| d.parse().ok()).collect::<Option<_>>()?;
        HostTensor::new(dtype, shape, pair[1].clone()).ok()
    };
    blocks.chunks_exact(2).map(tensor).collect()
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}
