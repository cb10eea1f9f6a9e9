use uuid::Uuid;

use super::*;

#[test]
fn a_name_is_trimmed_and_may_be_reserved() {
    let name = EnvironmentName::new("  QA ").unwrap();
    assert_eq!((name.as_str(), name.is_reserved()), ("QA", false));
    assert_eq!(name.kind(), EnvironmentType::Prod);
    for reserved in ["production", " Production ", "DEVELOPMENT"] {
        assert!(EnvironmentName::new(reserved).unwrap().is_reserved(), "{reserved}");
    }
    assert!(EnvironmentName::new("  ").is_err());
}

#[test]
fn a_provided_environment_has_a_reserved_name_and_a_color() {
    for (provided, kind) in [
        (Provided::Development, EnvironmentType::Dev),
        (Provided::Production, EnvironmentType::Prod),
    ] {
        let create = provided.create();
        assert_eq!(create.check(&[]), Err(EnvironmentRefusal::ReservedName));
        assert_eq!(create.name.kind(), kind);
        assert_eq!(EnvironmentName::new(create.name.as_str()), Ok(create.name));
        assert_eq!(Color::new(create.color.as_str()), Ok(create.color));
    }
}

#[test]
fn a_new_environment_has_a_free_name_and_a_parent_that_is_there() {
    let id = |n| EnvironmentId::from(Uuid::from_u128(n));
    let qa = EnvironmentCreate::new("QA").unwrap();
    let home = Home { organization_id: "acme".parse().unwrap(), environment_id: id(1) };
    let key = InitialKey::new("key".into(), UserId::host(), "hash".into());
    let now = Timestamp::from_millis(0);
    let there = [Environment::new(&home, qa.clone(), "qa".into(), key, now)];
    let staging = EnvironmentCreate::new("Staging").unwrap();
    for (create, siblings, expected) in [
        (qa.clone(), &[][..], Ok(())),
        (qa, &there, Err(EnvironmentRefusal::NameTaken)),
        (staging.clone(), &there, Ok(())),
        (staging.clone().parent_id(id(1)), &there, Ok(())),
        (staging.parent_id(id(2)), &there, Err(EnvironmentRefusal::NoParent(id(2)))),
    ] {
        assert_eq!(create.check(siblings), expected, "{create:?}");
    }
}

#[test]
fn a_stand_in_has_a_name_that_is_free_and_valid() {
    let home = Home {
        organization_id: "acme".parse().unwrap(),
        environment_id: EnvironmentId::from(Uuid::from_u128(7)),
    };
    let made = Environment::stand_in(&home, "short".into(), Timestamp::from_millis(0));
    assert_eq!(EnvironmentName::new(made.name.as_str()), Ok(made.name.clone()));
    assert!(!made.name.is_reserved() && made.kind.is_none() && made.api_keys.is_empty());
    assert_eq!(Color::new(made.color.as_str()), Ok(made.color));
    assert_eq!((made.id, made.organization_id), (home.environment_id, home.organization_id));
}

#[test]
fn a_color_is_hexadecimal() {
    for good in ["#fff", "fff", "#a1b2", "#A1B2C3", "a1b2c3d4"] {
        assert!(Color::new(good).is_ok(), "{good}");
    }
    for bad in ["red", "", "#", "#12345", "#ggg", "##fff", "ä1"] {
        let error = Color::new(bad).unwrap_err();
        assert_eq!(error.field, "color", "{bad}");
    }
}

#[test]
fn a_slug_is_the_name_and_the_id() {
    let id = EnvironmentId::from(Uuid::from_u128(61));
    let slug = |name| EnvironmentName::new(name).unwrap().slug(id);
    assert_eq!(slug("Production"), "prod_env_000000000000000000000z");
    assert_eq!(slug("QA  & Test"), "qa-test_env_000000000000000000000z");
}
