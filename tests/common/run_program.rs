//! Runs a case with a program on a device of any driver.

use std::collections::BTreeMap;

use wgslab::{Code, Context, Device, Driver, Error, ProgramSpec, Routine, TensorNode};

use super::case::{Case, Values, parse};
use super::run_case::{Outcome, check_failure, read};
use super::values::{compare, encode};

/// What the case gives, under the names of the program.
type Inputs = BTreeMap<String, (TensorNode, Vec<u8>)>;

/// Compiles, links and runs the program of a case, and compares what it made.
pub async fn run_program_case<D: Driver>(case: &Case, text: &str, device: &Device<D>) -> Result<Outcome, String> {
    let stage = case.stage.as_deref().unwrap_or("compile");
    let fails_at = |at: &str| case.error && stage == at;
    if case.error && !["compile", "link", "run"].contains(&stage) {
        return Err(format!("there is no stage \"{stage}\""));
    }
    let inputs = inputs(case)?;
    let mut spec =
        inputs.iter().fold(ProgramSpec::new(&case.name, text), |spec, (name, (node, _))| spec.node_as(name, node));
    spec.schedule = case.forced;
    let code = match device.compile(spec.outputs(case.outputs.keys())).await {
        Err(error) if fails_at("compile") => return check_failure(case, &error),
        Err(error) => return Err(error.to_string()),
        Ok(_) if fails_at("compile") => return Err("compiling succeeded; it must fail".to_owned()),
        Ok(code) => code,
    };
    let uploads: Vec<_> = inputs.values().map(|(node, bytes)| (node, bytes.as_slice())).collect();
    let loaded = Context::root(device).init_from_host_many(&uploads).map_err(|error| error.to_string())?;
    let routine = match loaded.link(&code).await {
        Err(error) if fails_at("link") => return check_failure(case, &error),
        Err(error) => return Err(error.to_string()),
        Ok(_) if fails_at("link") => return Err("linking succeeded; it must fail".to_owned()),
        Ok(routine) => routine,
    };
    let statics = statics(case)?;
    for _ in 0..case.repeat {
        match routine.run_with(&statics) {
            Err(error) if fails_at("run") => {
                is_untouched(&inputs, &routine).await?;
                return check_failure(case, &error);
            }
            Err(error) => return Err(error.to_string()),
            Ok(_) if case.error => return Err("the run succeeded; it must fail".to_owned()),
            Ok(_) => {}
        }
    }
    let max_error = outputs(case, &code, &routine).await?;
    Ok(Outcome::Passed { max_error })
}

fn inputs(case: &Case) -> Result<Inputs, String> {
    let mut inputs = Inputs::new();
    for (name, value) in &case.inputs {
        let values: Values = parse("input", value)?;
        let dtype = values.dtype.parse().map_err(|error: Error| error.to_string())?;
        let node = TensorNode::new(name, dtype, values.shape);
        let bytes = encode(dtype, &values.data)?;
        inputs.insert(name.clone(), (node, bytes));
    }
    Ok(inputs)
}

fn statics(case: &Case) -> Result<Vec<(&str, i32)>, String> {
    let statics = case.statics.iter().map(|(name, value)| {
        let number = value.as_i64().and_then(|number| i32::try_from(number).ok());
        Ok((name.as_str(), number.ok_or_else(|| format!("static \"{name}\" is {value}, which is no i32"))?))
    });
    statics.collect()
}

async fn outputs<D: Driver>(case: &Case, code: &Code<D>, routine: &Routine<D>) -> Result<f64, String> {
    if case.outputs.is_empty() {
        return Err("the case names no outputs, so that nothing would be compared".to_owned());
    }
    let mut max_error = 0.0f64;
    for (name, value) in &case.outputs {
        let want: Values = parse("output", value)?;
        let node = code.node(name).map_err(|error| error.to_string())?;
        let found = format!("{} {:?}", node.dtype(), node.shape());
        let wanted = format!("{} {:?}", want.dtype, want.shape);
        if found != wanted {
            return Err(format!("output \"{name}\" is {found}, expected {wanted}"));
        }
        let got = read(routine.context(), node).await?;
        let error = compare(node.dtype(), &got, &want.data, want.rtol, want.atol);
        max_error = max_error.max(error.map_err(|error| format!("output \"{name}\": {error}"))?);
    }
    Ok(max_error)
}

/// Whether a run that was refused has written nothing: the inputs are as given, all else as linked.
async fn is_untouched<D: Driver>(inputs: &Inputs, routine: &Routine<D>) -> Result<(), String> {
    for node in inputs.values().map(|(node, _)| node).chain(routine.outputs()) {
        let got = read(routine.context(), node).await?;
        let given = inputs.values().find(|(input, _)| input == node);
        if given.map_or_else(|| got.iter().any(|&byte| byte != 0), |(_, bytes)| *bytes != got) {
            return Err(format!("the run failed, and node {node} was written"));
        }
    }
    Ok(())
}
