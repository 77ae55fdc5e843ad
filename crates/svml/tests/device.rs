//! Devices, as far as they can be seen without a card: what is refused, what is said, and that the processor is used.
#![allow(clippy::unwrap_used, missing_docs)]

use std::path::PathBuf;

use svml::internals::{LEAST_ROWS, Watch};
use svml::learners::Itml;
use svml::{Dataset, Device, Error, Fixed, Generator, Matrix, Method, Model, Remedy, Run, Svml};

/// No computer has so many.
const NO_CARD: Device = Device::Cuda(1_000_000);

fn data(rows: usize) -> Dataset {
    Generator { rows, noise: 2, ..Generator::default() }.generate().unwrap().data
}

fn fit(data: &Dataset, method: impl Into<Method>, device: Device) -> svml::Result<Model> {
    Model::fit_with(data, method, &mut Run::new().device(device))
}

/// A method that is fast with many rows.
fn quick() -> Fixed {
    Fixed { gamma: 0.5, cost: Some(1.0), ..Fixed::default() }
}

#[track_caller]
fn refused<T>(result: svml::Result<T>) {
    let error = result.err().unwrap();
    let text = error.what();
    assert!(matches!(error, Error::Device { .. }), "{text}");
    assert!(text.starts_with("cuda:1000000 cannot be used: ") && text.len() > 40, "{text}");
    assert_eq!(error.remedy(), Some(Remedy::UseProcessor));
}

#[test]
fn a_card_that_is_not_there_is_refused_by_every_way_to_use_one() {
    let rows = data(60);
    let model = Model::fit(&rows, quick()).unwrap();
    for method in ["svml", "euclidean", "pca+none", "knn:k=3", "nca+knn:k=3"] {
        refused(fit(&rows, method.parse::<Method>().unwrap(), NO_CARD));
    }
    refused(model.on_device(NO_CARD));
    refused(Watch::on_device(NO_CARD));
    let first = Matrix::from_rows(&[[1.0, 7.0], [6.0, 2.0]]).unwrap();
    let second = Matrix::from_rows(&[[1.5, 1.0], [2.0, 9.0]]).unwrap();
    let mut run = Run::new().device(NO_CARD);
    refused(Model::fit_pairs(&first, &second, &[true, false], &Itml::default(), &mut run));
}

/// With too little to compute for a card, or without one, `auto` is the processor: the same bytes.
#[test]
fn auto_is_the_processor_where_no_card_pays() {
    for rows in [80, LEAST_ROWS + 100] {
        let rows = data(rows);
        let cpu = fit(&rows, quick(), Device::Cpu).unwrap();
        for device in [Device::Auto, Device::default()] {
            let auto = fit(&rows, quick(), device).unwrap();
            assert_eq!(auto.report().device, "cpu");
            assert!(auto.to_bytes().unwrap() == cpu.to_bytes().unwrap());
        }
        assert_eq!(Model::fit(&rows, quick()).unwrap(), cpu);
        assert!(!cpu.report().used_card());
        let here = cpu.decision(rows.x()).unwrap();
        assert_eq!(cpu.on_device(Device::Auto).unwrap().decision(rows.x()).unwrap(), here);
    }
    // Steps have times, which are not in the bytes.
    let rows = data(80);
    let bytes = |device| fit(&rows, Svml::default(), device).unwrap().to_bytes().unwrap();
    assert!(bytes(Device::Auto) == bytes(Device::Cpu));
}

/// A model predicts where it was asked to be computed. That is not part of it.
#[test]
fn the_device_of_predictions_is_not_saved() {
    let rows = data(60);
    let cpu = fit(&rows, quick(), Device::Cpu).unwrap();
    assert_eq!(cpu.device(), Device::Cpu);
    let loaded = Model::from_bytes(&cpu.to_bytes().unwrap()).unwrap();
    assert_eq!(loaded.device(), Device::Auto);
    assert_eq!(loaded, cpu);
    assert_eq!(loaded.on_device(Device::Cpu).unwrap().device(), Device::Cpu);
}

/// A checkpoint of a fit on the processor is the same for all devices that are the processor.
#[test]
fn a_fit_goes_on_under_another_name_of_the_processor() {
    let folder = std::env::temp_dir().join(format!("svml-device-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (rows, file): (Dataset, PathBuf) = (data(80), folder.join("fit.checkpoint"));
    let through = |device: Device| {
        Model::fit_with(&rows, Svml::default(), &mut Run::new().device(device).checkpoint(&file))
    };
    let first = through(Device::Cpu).unwrap();
    assert!(through(Device::Auto).unwrap().to_bytes().unwrap() == first.to_bytes().unwrap());
    std::fs::remove_dir_all(folder).unwrap();
}

/// The header of a model file, and what comes after it.
fn parts(file: &[u8]) -> (serde_json::Value, &[u8]) {
    let length = u64::from_le_bytes(file[12..20].try_into().unwrap()) as usize;
    let header = serde_json::from_slice(&file[20..20 + length]).unwrap();
    (header, &file[20 + length..file.len() - 4])
}

fn joined(file: &[u8], header: &serde_json::Value, arrays: &[u8]) -> Vec<u8> {
    let header = header.to_string().into_bytes();
    let mut bytes = file[..12].to_vec();
    bytes.extend((header.len() as u64).to_le_bytes());
    bytes.extend(header);
    bytes.extend(arrays);
    bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
    bytes
}

/// Files of the processor are as they were before there were devices; those of a card say so, and are read by all.
#[test]
fn a_file_says_that_a_card_was_used() {
    let model = fit(&data(60), quick(), Device::Cpu).unwrap();
    let file = model.to_bytes().unwrap();
    let (mut header, arrays) = parts(&file);
    assert!(header["report"].get("device").is_none(), "{}", header["report"]);
    // No version of its own: what does not know of devices reads it all the same.
    header["report"]["device"] = "cuda:0 (NVIDIA H200)".into();
    let of_card = Model::from_bytes(&joined(&file, &header, arrays)).unwrap();
    assert_eq!(of_card.report().device, "cuda:0 (NVIDIA H200)");
    assert!(of_card.report().used_card() && of_card != model);
    assert!(of_card.to_string().contains("computed on cuda:0 (NVIDIA H200)"), "{of_card}");
    assert!(!model.to_string().contains("computed on"), "{model}");
    let again = of_card.to_bytes().unwrap();
    assert_eq!(Model::from_bytes(&again).unwrap(), of_card);
    assert_eq!(again[8..12], file[8..12]);
    // Whatever a stranger has written there is a name on one line.
    header["report"]["device"] = "x\u{1b}[31m\n".repeat(1000).into();
    let hostile = Model::from_bytes(&joined(&file, &header, arrays)).unwrap().to_string();
    let line = hostile.lines().find(|line| line.contains("computed on")).unwrap();
    assert!(line.chars().count() < 200 && !hostile.contains('\u{1b}'), "{line}");
    header["report"]["device"] = 5.into();
    assert!(Model::from_bytes(&joined(&file, &header, arrays)).is_err());
}
